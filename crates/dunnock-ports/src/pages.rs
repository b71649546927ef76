//! Pages of the web.

use crate::BoxFuture;
use dunnock_proto::HostSet;
use std::fmt;

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Where it was found, after redirects.
    pub url: String,
    /// The status of the answer.
    pub status: u16,
    /// Its type, as the server says: `text/html`. Empty if it says none.
    pub kind: String,
    /// Its character set, as the server says: `utf-8`. Empty if it says none.
    pub charset: String,
    /// Its contents, decompressed.
    pub body: Vec<u8>,
    /// It is longer: only the beginning was read.
    pub cut: bool,
}

/// Why a page was not fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageError {
    /// A redirect leads to a host that is not allowed.
    Redirected {
        /// Where it leads.
        url: String,
    },
    /// Anything else.
    Failed(String),
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redirected { url } => write!(f, "the server redirects to another host: {url}"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}
impl std::error::Error for PageError {}

/// Fetches pages.
pub trait Pages: Send + Sync {
    /// Fetches a page from one of these hosts, without cookies and keys. What leads to another host
    /// or to an address that is not public is refused.
    fn fetch<'a>(
        &'a self,
        hosts: &'a HostSet,
        url: &'a str,
    ) -> BoxFuture<'a, Result<Page, PageError>>;
}

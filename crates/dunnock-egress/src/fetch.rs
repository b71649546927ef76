//! Fetches pages from hosts that are allowed.

use crate::proxy::{Refused, judged};
use dunnock_ports::{BoxFuture, Page, PageError, Pages};
use dunnock_proto::{Host, HostRule, HostSet};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Url, header, redirect};
use std::sync::Arc;
use std::time::Duration;

/// The longest body, in bytes, after it was decompressed.
const MOST_BYTES: usize = 10 << 20;
/// How long it may take, redirects included.
const MOST_TIME: Duration = Duration::from_secs(30);
/// How many redirects are followed.
const MOST_HOPS: usize = 5;
/// The longest URL, in bytes: it is shown to people and to the model.
const MOST_URL: usize = 4_000;
/// What is asked for.
const ACCEPT: &str = "text/html, text/markdown, text/plain, application/json, */*;q=0.1";
const NOT_A_URL: &str = "this is not a URL that can be fetched: it begins with http:// or https://, \
     has at most 4,000 bytes, and its host is a name in ASCII or an address in its usual form, without \
     a user or password";

/// Fetches pages from the web.
#[derive(Debug, Clone)]
pub struct WebPages {
    /// The name by which servers know the program.
    agent: String,
}

impl WebPages {
    /// Fetches pages under this name.
    #[must_use]
    pub fn new(agent: String) -> Self {
        Self { agent }
    }
}

impl Pages for WebPages {
    fn fetch<'a>(
        &'a self,
        hosts: &'a HostSet,
        url: &'a str,
    ) -> BoxFuture<'a, Result<Page, PageError>> {
        Box::pin(async move {
            let fetching = fetch(hosts, url, &self.agent);
            tokio::time::timeout(MOST_TIME, fetching).await.unwrap_or_else(|_| {
                Err(PageError::Failed(format!("it took longer than {} s", MOST_TIME.as_secs())))
            })
        })
    }
}

/// Resolves names for a fetch: every address is judged, and the connection goes to one of them.
struct JudgingResolver;

impl Resolve for JudgingResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = Host::parse(name.as_str())?;
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let judged: Addrs = Box::new(judged(&host, found.collect())?.into_iter());
            Ok(judged)
        })
    }
}

/// The URL, and the rule for its host; an error if programs may read it in different ways.
fn target(text: &str) -> Result<(Url, HostRule), PageError> {
    let read = || {
        let rule = HostRule::of_url(text)?;
        let mut url = Url::parse(text).ok().filter(|url| url.as_str().len() <= MOST_URL)?;
        url.set_fragment(None);
        (HostRule::of_url(url.as_str()).as_ref() == Some(&rule)).then_some((url, rule))
    };
    read().ok_or_else(|| PageError::Failed(NOT_A_URL.into()))
}

/// The type and the character set of a `Content-Type`; empty if they have no usual form.
fn content_type(text: &str) -> (String, String) {
    let (kind, more) = text.split_once(';').unwrap_or((text, ""));
    let charset = more.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    let usual = |text: &str| {
        let text = text.trim().to_ascii_lowercase();
        let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"/+-._:".contains(&byte);
        if text.len() <= 100 && text.bytes().all(is_usual) { text } else { String::new() }
    };
    (usual(kind), usual(charset.unwrap_or_default()))
}

/// What went wrong: the innermost error says it.
fn failed(error: &reqwest::Error) -> PageError {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
        if let Some(refused) = inner.downcast_ref::<Refused>() {
            return PageError::Failed(refused.to_string());
        }
    }
    PageError::Failed(format!("the page cannot be read: {inner}"))
}

async fn fetch(hosts: &HostSet, url: &str, agent: &str) -> Result<Page, PageError> {
    let (mut url, mut rule) = target(url)?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .user_agent(agent)
        .redirect(redirect::Policy::none())
        .no_proxy()
        .dns_resolver(Arc::new(JudgingResolver))
        .build()
        .map_err(|error| failed(&error))?;
    for hop in 0..=MOST_HOPS {
        if !hosts.includes(&HostSet::from_iter([rule.clone()])) {
            return Err(match hop {
                0 => PageError::Failed(format!("{rule} is not allowed")),
                _ => PageError::Redirected { url: url.into() },
            });
        }
        let request = client.get(url.clone()).header(header::ACCEPT, ACCEPT);
        let mut response = request.send().await.map_err(|error| failed(&error))?;
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        if let Some(location) =
            text(header::LOCATION).filter(|_| response.status().is_redirection())
        {
            let next = url.join(location);
            let next = next.map_err(|_| PageError::Failed("it redirects to no URL".into()))?;
            (url, rule) = target(next.as_str())?;
            continue;
        }
        let (kind, charset) = content_type(text(header::CONTENT_TYPE).unwrap_or_default());
        let (mut body, mut cut) = (Vec::new(), false);
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(&error))? {
            let room = MOST_BYTES - body.len();
            body.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
            cut = chunk.len() > room;
            if cut {
                break;
            }
        }
        return Ok(Page {
            url: url.into(),
            status: response.status().as_u16(),
            kind,
            charset,
            body,
            cut,
        });
    }
    Err(PageError::Failed(format!("there were more than {MOST_HOPS} redirects")))
}

//! What the engine needs from outside: a store, a model, tools, files, and the ownership of
//! sessions.
//!
//! Adapters implement these traits and never see each other. They return a [`BoxFuture`], so that a
//! port can be chosen at run time.
//!
//! A store has four parts, one trait each: [`EventLog`], [`Blobs`], [`Catalogue`] and [`Ledger`].
//! Whatever implements all four is a [`Store`]; [`StoreParts`] makes one of parts that come from
//! different places.

#![warn(missing_docs)]

mod blobs;
mod catalogue;
mod error;
mod event_log;
mod files;
mod ledger;
mod model;
mod ownership;
mod pages;
mod store;
mod tools;
mod types;

pub use blobs::{Blob, BlobFile, Blobs};
pub use catalogue::{Catalogue, Listed, Listing, SearchHit};
pub use dunnock_private::LockHolder;
pub use error::{FilesError, OwnershipError, RenderError, StoreError, SummaryError};
pub use event_log::{Appended, Batch, EventLog, first_event, fold_events};
pub use files::{Checkpoints, Files, RestorePlan, Restored, SaveControl, WorkspaceCopy};
pub use ledger::{Charge, DayTotal, Ledger};
pub use model::{Model, ModelRequest, Summary};
pub use ownership::{Epoch, Owned, OwnerNote, Ownership};
pub use pages::{Page, PageError, Pages};
pub use store::{Store, StoreParts};
pub use tokio_util::sync::CancellationToken;
pub use tools::{HostInfo, ToolCall, ToolSpec, Tools};
pub use types::{BoxFuture, DeltaSink};

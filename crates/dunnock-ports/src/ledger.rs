//! What all sessions spend in a day.

use crate::{BoxFuture, StoreError};

/// A change to the day's ledger, valid only for the version that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// Days since 1970 (UTC).
    pub day: i64,
    /// Millionths of a US dollar; negative amounts are refunds.
    pub micros: i64,
    /// The version of the ledger row that the decision was based on.
    pub version: u64,
}

/// What a day has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DayTotal {
    /// Millionths of a US dollar used and reserved.
    pub micros: i64,
    /// The number of changes so far.
    pub version: u64,
}

/// Counts the money of each day. Charges are part of a [`Batch`](crate::Batch).
pub trait Ledger: Send + Sync {
    /// The ledger of a day.
    fn day_total(&self, day: i64) -> BoxFuture<'_, Result<DayTotal, StoreError>>;
}

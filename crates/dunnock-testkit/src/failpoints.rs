//! Ends the process at a named place, as if the power had failed.
//!
//! `DUNNOCK_FAIL_AT=place:detail#n` kills at the n-th time that place is passed;
//! `DUNNOCK_FAIL_LIST=file` writes down every place that is passed.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};

struct Plan {
    at: Option<(String, u64)>,
    list: Option<String>,
    passed: Mutex<HashMap<String, u64>>,
}

static PLAN: OnceLock<Plan> = OnceLock::new();

/// Arms this process from its environment.
pub fn arm() {
    let at = std::env::var("DUNNOCK_FAIL_AT").ok().map(|text| match text.rsplit_once('#') {
        Some((place, n)) => (place.to_owned(), n.parse().unwrap_or(1)),
        None => (text, 1),
    });
    let list = std::env::var("DUNNOCK_FAIL_LIST").ok();
    if at.is_none() && list.is_none() {
        return;
    }
    let _ = PLAN.set(Plan { at, list, passed: Mutex::default() });
    let _ = dunnock_core::failpoint::HOOK.set(pass);
}

fn pass(place: &str, detail: &str) {
    let Some(plan) = PLAN.get() else { return };
    let name = if detail.is_empty() { place.to_owned() } else { format!("{place}:{detail}") };
    let mut passed = plan.passed.lock().unwrap_or_else(PoisonError::into_inner);
    let times = passed.entry(name.clone()).or_default();
    *times += 1;
    if let Some(list) = &plan.list {
        let file = std::fs::File::options().create(true).append(true).open(list);
        let _ = file.and_then(|mut f| f.write_all(format!("{name}\n").as_bytes()));
    }
    if plan.at.as_ref().is_some_and(|(at, n)| *at == name && n == times) {
        kill_self();
    }
}

/// As `kill -9` would: nothing is flushed, nothing is dropped.
pub fn kill_self() -> ! {
    let pid = std::process::id().to_string();
    let _ = std::process::Command::new("kill").args(["-9", &pid]).status();
    std::process::abort()
}

//! One writer per workspace, across sessions and processes.

use dunnock_core::failpoint;
use dunnock_ports::CancellationToken;
use dunnock_proto::Hash;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How often a waiting writer checks the lock. Waiting is rare, and a blocking kernel lock cannot
/// be interrupted.
const LOOK: Duration = Duration::from_millis(20);

/// The right to change a workspace, for as long as this value lives.
#[derive(Debug)]
pub(crate) struct Writing(#[expect(dead_code, reason = "held for its lock")] File);

/// How often a waiting writer checks who has the lock.
const LOOKS: u32 = 50;

/// What a person reads while another writer has the folder.
fn waiting_for(file: &Path) -> String {
    match dunnock_private::lock_holder(file) {
        Some(holder) if holder.pid != Some(std::process::id()) => {
            let todo =
                if holder.is_stopped() { format!("; {}", holder.advice()) } else { String::new() };
            format!("waiting: {holder} is writing in this folder{todo}")
        }
        Some(_) | None => "waiting: another session is writing in this folder".into(),
    }
}

/// Waits until nobody else writes. `waiting` is called with what a person should know if that takes
/// a while, and again when that changes. `None` if cancelled meanwhile.
pub(crate) async fn lock(
    locks: &Path,
    workspace: &str,
    halt: &CancellationToken,
    waiting: impl Fn(String),
) -> io::Result<Option<Writing>> {
    dunnock_private::restrict_folder(locks)?;
    failpoint::hit("workspace.lock.before", "");
    // One lock name per folder, however the path was written.
    let folder = std::fs::canonicalize(workspace)
        .unwrap_or_else(|_| Path::new(workspace).components().collect());
    let name = Hash::of(folder.as_os_str().as_encoded_bytes()).to_string();
    let path = locks.join(format!("{}.writer", &name[..32]));
    let file = dunnock_private::open_append(&path)?;
    let mut said = String::new();
    let mut looks = 0;
    loop {
        match file.try_lock() {
            Ok(()) => {
                failpoint::hit("workspace.lock.after", "");
                return Ok(Some(Writing(file)));
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if looks % LOOKS == 0 {
            let now = waiting_for(&path);
            if now != said {
                waiting(now.clone());
                said = now;
            }
        }
        looks += 1;
        tokio::select! {
            () = halt.cancelled() => return Ok(None),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

//! Where things are kept. The only file that reads the environment.

use anyhow::Context as _;
use dunnock_store::Sqlite;
use std::path::PathBuf;

/// The user's data folder for Dunnock: `$XDG_DATA_HOME/dunnock`, or what the system uses instead.
fn data_dir() -> anyhow::Result<PathBuf> {
    let from = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(dir) = from("DUNNOCK_DATA_DIR") {
        return Ok(dir);
    }
    if let Some(dir) = from("XDG_DATA_HOME").filter(|d| d.is_absolute()) {
        return Ok(dir.join("dunnock"));
    }
    if cfg!(windows) {
        let dir = from("LOCALAPPDATA").context("there is no data folder. Set LOCALAPPDATA, or use --data-dir")?;
        return Ok(dir.join("dunnock"));
    }
    let home = from("HOME").context("there is no home folder. Set HOME, or use --data-dir")?;
    Ok(home.join(".local/share/dunnock"))
}

/// Opens the store, and says so if it had to be rebuilt.
pub(crate) async fn open(given: Option<PathBuf>) -> anyhow::Result<Sqlite> {
    let dir = match given {
        Some(dir) => dir,
        None => data_dir()?,
    };
    let opened = Sqlite::open(&dir).await.with_context(|| format!("sessions in {} cannot be opened", dir.display()))?;
    if let Some(salvaged) = &opened.salvaged {
        crate::say::note(&format!(
            "the session database was damaged ({}) and was rebuilt: {} sessions whole, {} in part. The damaged one is kept in {}",
            salvaged.why,
            salvaged.whole,
            salvaged.partly,
            salvaged.kept_in.display()
        ));
    }
    Ok(opened.store)
}

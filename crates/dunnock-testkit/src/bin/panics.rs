//! The terminal app with a panic planted beside it, in the thread that draws.

use dunnock_tui::{App, Keep, Notify, Theme};
use tokio::sync::mpsc;

#[expect(clippy::panic, clippy::expect_used, reason = "this is what it is for")]
fn main() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (asks, _asked) = mpsc::channel(8);
        let (_tell, events) = mpsc::channel(8);
        let folder = tempfile::tempdir().expect("a folder");
        let keep = Keep::new(folder.path().to_path_buf());
        let (theme, notify, seed) = (Theme::Dark, Notify::Off, [0; 16]);
        let program = std::sync::Arc::new(|_: &str| Err(std::io::ErrorKind::NotFound.into()));
        let app = App {
            asks,
            events,
            keep,
            theme,
            notify,
            seed,
            folder: "new".into(),
            figures: None,
            program,
        };
        let soon = async {
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            panic!("a planted panic");
        };
        let _ = tokio::join!(dunnock_tui::run(app), soon);
    });
}

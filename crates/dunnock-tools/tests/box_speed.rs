//! What the box costs over a bare command, beside bubblewrap, in one run.

use crate::{job, launcher};
use dunnock_ports::{CancellationToken, DeltaSink, ToolCall, Tools as _};
use dunnock_proto::Isolation;
use dunnock_sandbox::Layout;
use dunnock_testkit::timing;
use dunnock_tools::Toolbox;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A quarter of them was quicker: what it costs when nothing else is going on.
fn quiet_quarter(all: &mut [Duration]) -> f64 {
    all.sort();
    all[all.len() / 4].as_secs_f64() * 1e3
}

pub fn layout(data: &Path) -> Layout {
    Layout {
        variables: Default::default(),
        git_configs: Vec::new(),
        ..dunnock_tools::layout(data, &[data.to_path_buf()])
    }
}

/// The same with the tool that others use: its usual options.
fn bubblewrap(work: &Path) -> Duration {
    let began = Instant::now();
    let mut command = Command::new("bwrap");
    command.args([
        "--ro-bind",
        "/usr",
        "/usr",
        "--ro-bind",
        "/etc",
        "/etc",
        "--symlink",
        "usr/bin",
        "/bin",
    ]);
    command.args([
        "--symlink",
        "usr/lib",
        "/lib",
        "--symlink",
        "usr/lib64",
        "/lib64",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]);
    command.args(["--tmpfs", "/tmp", "--bind"]).arg(work).arg(work).args([
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
    ]);
    let output =
        command.arg("--chdir").arg(work).args(["--", "/bin/sh", "-c", ":"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    began.elapsed()
}

fn posix_spawn() -> Duration {
    let began = Instant::now();
    assert!(Command::new("/bin/sh").args(["-c", ":"]).output().unwrap().status.success());
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_box_costs_little_and_less_than_bubblewrap() {
    let (work, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // As in any project.
    assert!(
        Command::new("git")
            .args(["init", "-q"])
            .current_dir(work.path())
            .status()
            .unwrap()
            .success()
    );
    let toolbox = Toolbox::new(Default::default(), &launcher(), &[]).boxed(layout(data.path()));
    let quiet: DeltaSink = Arc::new(|_| {});
    let ours = async |level: Isolation| {
        let job = ToolCall {
            isolation: level,
            ..job(work.path(), "shell", r#"{"command":["/bin/sh","-c",":"]}"#)
        };
        let began = Instant::now();
        let (finished, _) = toolbox.run(job, quiet.clone(), CancellationToken::default()).await;
        assert_eq!(finished.exit, Some(0), "{}", finished.shown);
        began.elapsed()
    };
    let mut ballast: Vec<u8> = Vec::new();
    for megabytes in [16, 512] {
        ballast.resize(megabytes << 20, 1);
        std::hint::black_box(&mut ballast);
        let mut times: [Vec<Duration>; 6] = Default::default();
        for _ in 0..timing::rounds(15, 150) {
            times[0].push(tokio::task::block_in_place(posix_spawn));
            for (n, level) in
                [Isolation::D, Isolation::C, Isolation::B, Isolation::A].into_iter().enumerate()
            {
                times[n + 1].push(ours(level).await);
            }
            times[5].push(tokio::task::block_in_place(|| bubblewrap(work.path())));
        }
        let [spawn, bare, c, b, a, bwrap] = times.each_mut().map(|all| quiet_quarter(all));
        let (low, full, other) = (c - bare, a - bare, bwrap - spawn);
        println!(
            "{megabytes} MB: bare {bare:.2} ms; over that: C +{low:.2}, B +{:.2}, A +{full:.2} \
             ms; bubblewrap +{other:.2} over its bare; A is {:.2} of it",
            b - bare,
            full / other
        );
        // The bars are 1 ms, 2.5 ms and 0.6; a machine that does other things as well is given some
        // room.
        timing::wall_ratio(&format!("level C at {megabytes} MB, in ms"), low, 1.5);
        timing::wall_ratio(&format!("level A at {megabytes} MB, in ms"), full, 4.0);
        timing::wall_ratio(
            &format!("level A at {megabytes} MB, to bubblewrap"),
            full / other,
            0.75,
        );
    }
}

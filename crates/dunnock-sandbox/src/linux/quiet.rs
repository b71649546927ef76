//! An allocator for tests that aborts the process if it allocates where it must not.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI32, Ordering};

/// The thread that is forking, and its process. A child inherits both.
static QUIET: AtomicI32 = AtomicI32::new(0);
static MAKER: AtomicI32 = AtomicI32::new(0);

/// Whether the caller must not allocate: other threads of this process may, a cloned child may not.
#[expect(unsafe_code, reason = "plain system calls")]
fn forbidden() -> bool {
    // SAFETY: reads two ids of this process and thread; nothing is allocated.
    let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
    let quiet = QUIET.load(Ordering::Relaxed);
    quiet != 0 && (thread == quiet || process != MAKER.load(Ordering::Relaxed))
}

/// Forbids allocation in the current thread and its children, or allows it again.
pub(crate) fn quiet(on: bool) {
    // SAFETY: as above.
    #[expect(unsafe_code, reason = "plain system calls")]
    let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
    MAKER.store(process, Ordering::Relaxed);
    QUIET.store(if on { thread } else { 0 }, Ordering::Relaxed);
}

struct Watched;

#[expect(unsafe_code, reason = "an allocator cannot be written without it")]
// SAFETY: forwards everything to the system allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if forbidden() {
            // SAFETY: ends the process.
            unsafe { libc::abort() };
        }
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if forbidden() {
            // SAFETY: as above.
            unsafe { libc::abort() };
        }
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

#[cfg(test)]
mod tests {
    use super::super::{Fate, Isolation, Layer, Plan, Ready, SandboxSpec, Spawned, abi, spawn};
    use std::rc::Rc;

    /// Every level, with everything that a sandbox can have; and no sandbox.
    #[test]
    fn nothing_is_allocated_between_clone_and_exec() {
        // In a process of its own: other tests beside it may allocate.
        if std::env::var_os("DUNNOCK_QUIET").is_none() {
            let name = "linux::quiet::tests::nothing_is_allocated_between_clone_and_exec";
            let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
            let alone = alone
                .args([name, "--exact", "--nocapture", "--test-threads", "1"])
                .env("DUNNOCK_QUIET", "1")
                .output();
            let (alone, said) =
                alone.map(|o| (o.status, String::from_utf8_lossy(&o.stdout).into_owned())).unwrap();
            assert!(alone.success() && said.contains("1 passed"), "{alone}: {said}");
            return said
                .lines()
                .filter(|l| l.contains("nothing allocated"))
                .for_each(|l| println!("{l}"));
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
            dir.path().join(name).canonicalize().unwrap()
        };
        let spec = |isolation| SandboxSpec {
            isolation,
            workspace: at("w"),
            writes: true,
            build: vec![],
            pinned: vec![at("w/.git")],
            closed: vec![at("w/.git/hooks")],
            hidden: vec![at("w/.dunnock")],
            private: vec![at("home")],
            readable: vec![at("home/tools")],
            repository: vec![at("git")],
            own: Vec::new(),
            writable: vec![at("cache")],
            layered: vec![Layer {
                below: at("home/below"),
                between: Some(at("between")),
                above: at("above"),
                work: at("work"),
            }],
            tmp: at("tmp"),
            network: false,
            shares: None,
        };
        let all = [
            (None, false),
            (Some(Isolation::C), false),
            (Some(Isolation::B), false),
            (Some(Isolation::A), false),
        ];
        for (isolation, shared) in
            all.into_iter().chain([(Some(Isolation::B), true), (Some(Isolation::A), true)])
        {
            let plan = isolation
                .map(|isolation| Rc::new(Plan::new(&spec(isolation), abi(), 1 << 30).unwrap()));
            let null = || {
                std::fs::File::options().read(true).write(true).open("/dev/null").unwrap().into()
            };
            let folder = at("w").display().to_string();
            let words = ["/bin/sh".to_owned(), "-c".to_owned(), "exit 7".to_owned()];
            let mut ready =
                Ready::new(&words, vec![], &folder, [null(), null(), null()], false, plan).unwrap();
            if shared {
                ready.join = Some(Rc::new(super::super::network(None).unwrap()));
            }
            let Spawned { pid, report, .. } = spawn(&ready).unwrap();
            let status = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())
                .unwrap()
                .unwrap()
                .1;
            let fate = Fate::read(&report);
            let ended = match &fate {
                Some(Fate::Over(raw) | Fate::Began(Some(raw))) => raw >> 8,
                _ => status.exit_status().unwrap_or(-1),
            };
            assert_eq!(ended, 7, "{isolation:?}: {fate:?} {status:?}");
            println!("{isolation:?}: began and ended, nothing allocated on the way");
        }
    }
}

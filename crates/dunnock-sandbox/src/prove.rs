//! Proves a sandbox: sets up targets, tries every attack with and without the sandbox, and checks
//! the targets.

use crate::attack::{ATTACKS, Attack, Shows};
use crate::client::{Ended, Launcher, Run};
use crate::linux::SandboxSpec;
use crate::wire::Bounds;
use std::io::{self, BufRead as _, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// The first argument that makes the program run one attack.
pub const PROBE: &str = "__probe";
/// The first argument that makes the program a target of attacks.
pub const VICTIM: &str = "__victim";
const SECRET: &str = "the-secret-of-the-victim";

/// The result of one attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// It was stopped, with this error (or 0).
    Held(i32),
    /// It gained a kernel facility but touched nothing outside.
    Private,
    /// It touched something outside.
    Out,
}

/// One attack and its results.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The attack's name.
    pub name: &'static str,
    /// Without a sandbox, if that was tried.
    pub bare: Option<ProbeOutcome>,
    /// In the sandbox.
    pub boxed: ProbeOutcome,
}

/// Runs one attack; for [`PROBE`].
#[must_use]
pub fn probe(name: &str) -> std::process::ExitCode {
    crate::attack::run(name).into()
}

/// Holds a secret in memory, in its environment, in a descriptor and in shared memory; for
/// [`VICTIM`]. Exits when its input closes.
#[must_use]
#[expect(unsafe_code, reason = "shared memory and descriptors by number")]
#[expect(clippy::print_stdout, reason = "the parent process reads it")]
pub fn victim() -> std::process::ExitCode {
    let text = format!("{SECRET}{}", "\0".repeat(64));
    let key = std::process::id() as i32;
    // SAFETY: the segment is 64 bytes long, and 64 bytes are copied.
    let segment = unsafe {
        let segment = libc::shmget(key, 64, libc::IPC_CREAT | 0o600);
        let at = libc::shmat(segment, std::ptr::null(), 0);
        if at as isize != -1 {
            std::ptr::copy_nonoverlapping(text.as_ptr(), at.cast::<u8>(), 64);
        }
        segment
    };
    if let Ok(file) = std::fs::File::open("secret.txt") {
        // SAFETY: the number is unused: this process has just started.
        unsafe { libc::dup2(file.as_raw_fd(), 9) };
    }
    println!("{} {key}", text.as_ptr() as usize);
    let _ = io::stdin().read(&mut [0; 1]);
    // SAFETY: removes the segment created above.
    unsafe { libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut()) };
    std::hint::black_box(&text);
    std::process::ExitCode::SUCCESS
}

/// All targets of the attacks.
struct Ground {
    base: PathBuf,
    home: PathBuf,
    name: String,
    victim: Child,
    env: Vec<(String, String)>,
    tcp: [std::net::TcpListener; 2],
    udp: std::net::UdpSocket,
    unix: [UnixListener; 3],
    datagram: UnixDatagram,
}

impl Ground {
    fn new(program: &Path, base: &Path, home: &Path) -> io::Result<Self> {
        let (outside, work) = (base.join("outside"), base.join("work"));
        std::fs::create_dir_all(&outside)?;
        std::fs::create_dir_all(work.join("mnt"))?;
        std::fs::write(outside.join("secret.txt"), SECRET)?;
        let name = format!("dunnock-probe-{}", std::process::id());
        let tcp =
            [std::net::TcpListener::bind("127.0.0.1:0")?, std::net::TcpListener::bind("[::1]:0")?];
        let udp = std::net::UdpSocket::bind("127.0.0.1:0")?;
        let abstracted = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let unix = [
            UnixListener::bind(outside.join("s.sock"))?,
            UnixListener::bind(work.join("s.sock"))?,
            abstracted,
        ];
        let datagram = UnixDatagram::bind(outside.join("d.sock"))?;
        tcp.iter().try_for_each(|l| l.set_nonblocking(true))?;
        unix.iter().try_for_each(|l| l.set_nonblocking(true))?;
        udp.set_nonblocking(true)?;
        datagram.set_nonblocking(true)?;
        let mut victim = Command::new(program);
        victim
            .arg(VICTIM)
            .current_dir(&outside)
            .env_clear()
            .env("HELD", SECRET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut victim = victim.spawn()?;
        let mut text = String::new();
        io::BufReader::new(victim.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?)
            .read_line(&mut text)?;
        let (address, key) = text.trim().split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
        let port = |l: &std::net::TcpListener| l.local_addr().map_or(0, |a| a.port());
        let env = [
            ("OUTSIDE", outside.display().to_string()),
            ("WORK", work.display().to_string()),
            ("HOME", home.display().to_string()),
            ("PORT", port(&tcp[0]).to_string()),
            ("PORT6", port(&tcp[1]).to_string()),
            ("UDP", udp.local_addr()?.port().to_string()),
            ("VICTIM", victim.id().to_string()),
            ("ADDRESS", address.to_owned()),
            ("KEY", key.to_owned()),
            ("NAME", name.clone()),
        ];
        let env = env.into_iter().map(|(name, value)| (format!("PROBE_{name}"), value)).collect();
        let (base, home) = (base.to_path_buf(), home.to_path_buf());
        let ground = Self { base, home, name, victim, env, tcp, udp, unix, datagram };
        ground.reset()?;
        Ok(ground)
    }

    /// Files that attacks may leave in shared places.
    fn marks(&self) -> Vec<PathBuf> {
        let mut marks: Vec<PathBuf> = ["/tmp", "/var/tmp", "/etc", "/usr/bin", "/dev/shm"]
            .iter()
            .map(|d| Path::new(d).join(&self.name))
            .collect();
        marks.push(self.home.join(".probe-profile"));
        marks
    }

    /// Removes whatever an attack left and restores the targets.
    fn reset(&self) -> io::Result<()> {
        let (outside, work) = (self.base.join("outside"), self.base.join("work"));
        for entry in std::fs::read_dir(&outside)?.flatten() {
            if !["secret.txt", "s.sock", "d.sock"].iter().any(|keep| entry.file_name() == *keep) {
                std::fs::remove_file(entry.path())?;
            }
        }
        let victim = outside.join("victim.txt");
        std::fs::write(&victim, "whole")?;
        std::fs::set_permissions(&victim, std::fs::Permissions::from_mode(0o644))?;
        std::fs::File::options().write(true).open(&victim)?.set_modified(std::time::UNIX_EPOCH)?;
        for entry in std::fs::read_dir(&work)?.flatten() {
            match entry.file_type()?.is_dir() {
                true if entry.file_name() != "mnt" => std::fs::remove_dir_all(entry.path())?,
                false if entry.file_name() != "s.sock" => std::fs::remove_file(entry.path())?,
                _ => {}
            }
        }
        self.marks().iter().for_each(|mark| drop(std::fs::remove_file(mark)));
        let _ = self.reached();
        Ok(())
    }

    /// A snapshot of everything outside that could have changed.
    fn look(&self) -> String {
        let outside = self.base.join("outside");
        let mut seen: Vec<String> = std::fs::read_dir(&outside)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| {
                let about = entry.path().symlink_metadata();
                let about = about.map(|m| {
                    (m.mode(), m.uid(), m.gid(), m.len(), m.mtime(), m.ctime(), m.ctime_nsec())
                });
                format!("{:?} {about:?}", entry.file_name())
            })
            .collect();
        seen.sort();
        format!("{seen:?} {:?}", self.marks().iter().map(|mark| mark.exists()).collect::<Vec<_>>())
    }

    /// Whether any listener was reached since the last call.
    fn reached(&self) -> bool {
        let tcp = self.tcp.iter().filter(|l| l.accept().is_ok()).count();
        let unix = self.unix.iter().filter(|l| l.accept().is_ok()).count();
        let udp = self.udp.recv(&mut [0; 8]).is_ok();
        let datagram = self.datagram.recv(&mut [0; 8]).is_ok();
        tcp + unix > 0 || udp || datagram
    }

    /// Judges an attack by its exit code, its output and the state of the targets.
    fn judge(&self, attack: &Attack, before: &str, code: i32, out: &[u8]) -> ProbeOutcome {
        let text = String::from_utf8_lossy(out);
        let (secret, changed, reached) =
            (text.contains(SECRET), self.look() != before, self.reached());
        let listed = attack.name == "list_outside" && text.contains("secret.txt");
        // Any effect outside counts, even one the attack did not aim for.
        if secret || listed || changed || reached || (attack.shows == Shows::Touch && code == 0) {
            ProbeOutcome::Out
        } else if attack.shows == Shows::Gain && code == 0 {
            ProbeOutcome::Private
        } else {
            ProbeOutcome::Held(code)
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        drop(self.victim.stdin.take());
        let _ = self.victim.wait();
        let _ = self.reset();
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

/// Tries every attack in the sandbox that `spec` builds for a folder; with `bare`, also without
/// one. Creates `base` and removes it afterwards.
///
/// # Errors
/// If the targets cannot be set up, or no launcher can be started.
#[expect(unsafe_code, reason = "a descriptor is left open on purpose, by its number")]
pub async fn prove(
    program: &Path,
    base: &Path,
    home: &Path,
    bare: bool,
    spec: impl Fn(&Path) -> io::Result<SandboxSpec>,
) -> io::Result<Vec<Trial>> {
    let ground = Ground::new(program, base, home)?;
    let secret = std::fs::File::open(base.join("outside/secret.txt"))?;
    // A descriptor that someone forgot to close on exec.
    // SAFETY: the number is unused: it is far above what is open here.
    unsafe { libc::dup2(secret.as_raw_fd(), 77) };
    let launcher = Arc::new(Launcher::new(program.to_path_buf(), &[crate::LAUNCH]));
    let work = base.join("work");
    let spec = spec(&work)?;
    let mut trials = Vec::new();
    for attack in ATTACKS {
        let mut tried = None;
        if bare {
            let before = ground.look();
            let mut command = Command::new(program);
            let command = command
                .args([PROBE, attack.name])
                .current_dir(&work)
                .env_clear()
                .envs(ground.env.clone());
            let ended = command.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
            tried = Some(ground.judge(
                attack,
                &before,
                ended.status.code().unwrap_or(255),
                &ended.stdout,
            ));
            let mount = std::ffi::CString::new(work.join("mnt").to_string_lossy().as_bytes())?;
            // SAFETY: the path is NUL-terminated. Unmounts what an attack may have mounted.
            unsafe { libc::umount2(mount.as_ptr(), libc::MNT_DETACH) };
            ground.reset()?;
        }
        let before = ground.look();
        let (code, out) = boxed(&launcher, program, attack.name, &ground.env, &work, &spec).await?;
        trials.push(Trial {
            name: attack.name,
            bare: tried,
            boxed: ground.judge(attack, &before, code, &out),
        });
        ground.reset()?;
    }
    // SAFETY: closes the descriptor opened above.
    unsafe { libc::close(77) };
    launcher.stop();
    Ok(trials)
}

/// Runs one attack in the sandbox; returns its exit code and output.
async fn boxed(
    launcher: &Arc<Launcher>,
    program: &Path,
    name: &str,
    env: &[(String, String)],
    work: &Path,
    spec: &SandboxSpec,
) -> io::Result<(i32, Vec<u8>)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let run = Run {
        words: vec![program.display().to_string(), PROBE.into(), name.into()],
        folder: work.display().to_string(),
        env: env.to_vec(),
        terminal: false,
        bounds: Bounds::default(),
        lasting: false,
        spec: Some(spec.clone()),
    };
    let fds: Vec<OwnedFd> = vec![write.try_clone()?, write];
    let mut running = launcher.start(run, fds)?;
    let code = match running.ended().await {
        Ended::Exited { code, signal, .. } | Ended::Continues { code, signal } => {
            code.or(signal.map(|s| 128 + s)).unwrap_or(255)
        }
        Ended::Refused(why) => return Err(io::Error::other(why)),
        Ended::Lost => return Err(io::Error::other("the launcher died")),
    };
    let mut out = Vec::new();
    std::fs::File::from(read).take(1 << 20).read_to_end(&mut out)?;
    Ok((code, out))
}

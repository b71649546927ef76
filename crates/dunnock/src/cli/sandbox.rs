//! `dunnock sandbox`: shows how commands are sandboxed here, tests it, and runs a command in the
//! sandbox.

use crate::cli::args::Boxes;
use crate::compose;
use crate::config::settings::Settings;
use crate::config::{load, paths, sandbox_settings};
use crate::view::output;
use dunnock_proto::Isolation;
use dunnock_tools::SandboxSupport;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// The mechanisms of each level.
pub(crate) fn made_of(level: Isolation) -> &'static str {
    match level {
        Isolation::A => {
            "namespaces for users, mounts, processes, network and IPC; Landlock; seccomp"
        }
        Isolation::B => {
            "namespaces for users, processes, network and IPC; Landlock; seccomp; no mount \
             namespace"
        }
        Isolation::C => "Landlock and seccomp; no sockets except socketpair",
        Isolation::D => {
            "nothing: commands run with your permissions; all but known read-only ones need \
             approval"
        }
    }
}

/// What each level does not block, according to the probes. See also `docs/concepts/sandbox.md`.
pub(crate) fn open_at(level: Isolation) -> &'static [&'static str] {
    match level {
        Isolation::A => &[
            "a command can reach a socket that another program creates in this folder while the \
             command runs",
            "missing protected files can be created while a command runs; they are removed \
             afterwards",
            "the parts of ~ that the sandbox shows (toolchains, .gitconfig) can be read",
        ],
        Isolation::B => &[
            "mode, owner, times and extended attributes of your files outside can be changed, but \
             not their content",
            "names and sizes of files outside are visible",
            "commands can read files in deny_paths, and secret files of this folder that they do not name",
            "protected files can be changed while a command runs; they are restored afterwards",
        ],
        Isolation::C => &[
            "the same as at level B; in addition, tests that need sockets fail",
            "your other processes are visible; before Linux 6.12, commands can send signals to \
             them",
        ],
        Isolation::D => &["everything"],
    }
}

/// How to get from a lower level to level A, if known.
pub(crate) fn way_up(confined: &SandboxSupport) -> Option<String> {
    if confined.level == Isolation::A || !cfg!(target_os = "linux") {
        return None;
    }
    let why = confined
        .why
        .iter()
        .find(|(level, _)| *level == Isolation::A)
        .map_or("", |(_, why)| why.as_str());
    let restricted =
        std::fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
            .is_ok_and(|text| text.trim() == "1");
    let exe = std::env::current_exe()
        .map_or_else(|_| "/usr/local/bin/dunnock".into(), |exe| exe.display().to_string());
    let how = if restricted {
        format!(
            "this system (Ubuntu 23.10 and later) lets only programs with an AppArmor profile \
             create user namespaces. As root:\n  printf 'abi <abi/4.0>,\\ninclude \
             <tunables/global>\\nprofile dunnock {exe} flags=(unconfined) {{\\n  userns,\\n}}\\n' \
             > /etc/apparmor.d/dunnock && apparmor_parser -r /etc/apparmor.d/dunnock"
        )
    } else if std::fs::read_to_string("/proc/sys/user/max_user_namespaces")
        .is_ok_and(|text| text.trim() == "0")
    {
        "user namespaces are switched off. As root: sysctl user.max_user_namespaces=15000".into()
    } else if std::fs::read_to_string("/proc/sys/kernel/unprivileged_userns_clone")
        .is_ok_and(|t| t.trim() == "0")
    {
        "user namespaces are switched off for ordinary users. As root: sysctl \
         kernel.unprivileged_userns_clone=1"
            .into()
    } else {
        "in a container, allow user namespaces and mounting /proc; elsewhere, use Linux 6.2 or \
         later"
            .into()
    };
    Some(format!("{why}\n{how}"))
}

/// Runs this program as an escape probe or as the target of one, if the arguments say so.
#[cfg(target_os = "linux")]
pub(crate) fn part(words: &[std::ffi::OsString]) -> Option<ExitCode> {
    match words.get(1)?.to_str()? {
        dunnock_sandbox::PROBE => Some(dunnock_sandbox::probe(words.get(2)?.to_str()?)),
        dunnock_sandbox::VICTIM => Some(dunnock_sandbox::victim()),
        _ => None,
    }
}

pub(crate) async fn run(
    data: Option<PathBuf>,
    what: Option<Boxes>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let here = paths::workspace(None).ok();
    let settings = load::settings(here.as_deref(), false, load::given(data, Vec::new()))?;
    sandbox_settings::check_folders(&settings)?;
    sandbox_settings::denied(&settings)?; // fail on an invalid pattern, because it would hide nothing
    match what {
        None => show(&settings, json),
        #[cfg(target_os = "linux")]
        Some(Boxes::Prove { bare, level }) => prove(&settings, bare, level, json).await,
        #[cfg(target_os = "linux")]
        Some(Boxes::Run { network, level, words }) => {
            try_it(&settings, network, level, words).await
        }
        #[cfg(not(target_os = "linux"))]
        Some(_) => anyhow::bail!("there is no sandbox on {} yet (level D)", std::env::consts::OS),
    }
}

fn show(settings: &Settings, json: bool) -> anyhow::Result<ExitCode> {
    let confined = compose::confined(settings, &paths::data_dir(settings)?);
    if let Some(why) = &confined.failed {
        anyhow::bail!("the sandbox could not be checked: {why}. Try again");
    }
    let level = confined.level;
    if json {
        let why: Vec<_> = confined
            .why
            .iter()
            .map(|(l, why)| json!({"level": format!("{l:?}"), "why": why}))
            .collect();
        let open = open_at(level);
        output::line(
            &json!({"level": format!("{level:?}"), "made_of": made_of(level), "open": open, "not": why}).to_string(),
        );
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&format!("level {level:?}: {}", made_of(level)));
    for (better, why) in &confined.why {
        output::line(&format!("no level {better:?}: {}", output::visible(why)));
    }
    output::line("not blocked at this level:");
    open_at(level).iter().for_each(|line| output::line(&format!("  {line}")));
    if let Some(way) = way_up(&confined) {
        output::line(&format!("how to get level A: {}", output::visible(&way)));
    }
    Ok(ExitCode::SUCCESS)
}

/// The requested level, or else the best available.
#[cfg(target_os = "linux")]
fn isolation(
    settings: &Settings,
    data: &std::path::Path,
    given: Option<&str>,
) -> anyhow::Result<dunnock_sandbox::Isolation> {
    use dunnock_sandbox::Isolation as Level;
    Ok(match given {
        Some("A") => Level::A,
        Some("B") => Level::B,
        Some(_) => Level::C,
        None => match compose::confined(settings, data) {
            SandboxSupport { failed: Some(why), .. } => {
                anyhow::bail!("the sandbox could not be checked: {why}. Try again")
            }
            SandboxSupport { level: Isolation::A, .. } => Level::A,
            SandboxSupport { level: Isolation::B, .. } => Level::B,
            SandboxSupport { level: Isolation::C, .. } => Level::C,
            SandboxSupport { level: Isolation::D, .. } => anyhow::bail!(
                "no sandbox is available here (level D). \"dunnock sandbox\" shows why"
            ),
        },
    })
}

#[cfg(target_os = "linux")]
async fn prove(
    settings: &Settings,
    bare: bool,
    level: Option<String>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    use anyhow::Context as _;
    use dunnock_sandbox::{Opened, ProbeOutcome};
    let data = paths::data_dir(settings)?;
    let isolation = isolation(settings, &data, level.as_deref())?;
    let mut layout = sandbox_settings::layout(settings, &data);
    let exe = std::env::current_exe().context("the path of this program cannot be found")?;
    layout.readable.push(exe.clone());
    let home = layout.home.clone().unwrap_or_else(|| data.clone());
    let base = data.canonicalize().unwrap_or(data).join(format!("prove-{}", std::process::id()));
    // As for tool calls: the network is shared within the session.
    let shares = Some("prove".to_owned());
    let spec = |work: &std::path::Path| {
        let (spec, _) = layout.spec(isolation, work, Opened::default())?;
        Ok(dunnock_sandbox::SandboxSpec { shares: shares.clone(), ..spec })
    };
    let trials = dunnock_sandbox::prove(&exe, &base, &home, bare, spec).await?;
    let word = |came: ProbeOutcome| match came {
        ProbeOutcome::Held(_) => "held",
        ProbeOutcome::Private => "private",
        ProbeOutcome::Out => "OUT",
    };
    let count = |came: fn(ProbeOutcome) -> bool| trials.iter().filter(|t| came(t.boxed)).count();
    let (held, private, out) = (
        count(|c| matches!(c, ProbeOutcome::Held(_))),
        count(|c| c == ProbeOutcome::Private),
        count(|c| c == ProbeOutcome::Out),
    );
    let names = |came: fn(ProbeOutcome) -> bool| {
        trials.iter().filter(|t| came(t.boxed)).map(|t| t.name).collect::<Vec<_>>()
    };
    if json {
        let bare_open = bare.then(|| {
            trials.iter().filter(|t| !matches!(t.bare, Some(ProbeOutcome::Held(_)))).count()
        });
        let each: serde_json::Map<String, serde_json::Value> = trials
            .iter()
            .map(|t| {
                (t.name.to_owned(), json!({"bare": t.bare.map(word), "sandboxed": word(t.boxed)}))
            })
            .collect();
        let report = json!({
            "level": format!("{isolation:?}"), "probes": trials.len(), "blocked": held, "open": names(|c| c == ProbeOutcome::Out),
            "private": names(|c| c == ProbeOutcome::Private), "open_bare": bare_open, "each": each,
        });
        output::line(&report.to_string());
    } else {
        let label = |came: ProbeOutcome| match came {
            ProbeOutcome::Held(_) => "blocked",
            ProbeOutcome::Private => "harmless",
            ProbeOutcome::Out => "ESCAPED",
        };
        for trial in &trials {
            let bare =
                trial.bare.map_or(String::new(), |came| format!("unsandboxed: {:<9}", label(came)));
            let error = match trial.boxed {
                ProbeOutcome::Held(code) if code > 0 && code < 134 => {
                    std::io::Error::from_raw_os_error(code).to_string()
                }
                _ => String::new(),
            };
            output::line(&format!(
                "{:<20} {bare}sandboxed: {:<8} {error}",
                trial.name,
                label(trial.boxed)
            ));
        }
        output::line(&format!(
            "level {isolation:?}: {} escapes tried, {held} blocked, {private} harmless (nothing \
             outside touched), {out} escaped",
            trials.len()
        ));
    }
    Ok(if out == 0 && trials.len() >= 60 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a command in the same sandbox as tool calls, without input or output.
#[cfg(target_os = "linux")]
pub(crate) async fn quietly(
    settings: &Settings,
    data: &std::path::Path,
    workspace: &std::path::Path,
    words: Vec<String>,
) -> anyhow::Result<()> {
    use dunnock_sandbox::{LAUNCH, Launcher, Opened, Run};
    let isolation = isolation(settings, data, None)?;
    let (spec, more) =
        sandbox_settings::layout(settings, data).spec(isolation, workspace, Opened::default())?;
    let env = dunnock_tools::boxed_environment(more);
    let launcher = std::sync::Arc::new(Launcher::new("/proc/self/exe".into(), &[LAUNCH]));
    let null = || {
        std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .map(std::os::fd::OwnedFd::from)
    };
    let fds = vec![null()?, null()?, null()?];
    let folder = workspace.display().to_string();
    let run = Run { words, folder, env, spec: Some(spec), ..Run::default() };
    launcher.start(run, fds)?.ended().await;
    Ok(())
}

/// Runs the user's command in the sandbox, with the input and output of this program.
#[cfg(target_os = "linux")]
async fn try_it(
    settings: &Settings,
    network: bool,
    level: Option<String>,
    words: Vec<String>,
) -> anyhow::Result<ExitCode> {
    use anyhow::Context as _;
    use dunnock_sandbox::{Ended, LAUNCH, Launcher, Opened, Run};
    use std::os::fd::AsFd as _;
    let workspace = paths::workspace(None)?;
    let data = paths::data_dir(settings)?;
    let isolation = isolation(settings, &data, level.as_deref())?;
    let (spec, more) = sandbox_settings::layout(settings, &data).spec(
        isolation,
        &workspace,
        Opened { network, ..Opened::default() },
    )?;
    let name = words.first().context("the command is empty")?;
    let program = dunnock_tools::found(name);
    let words = std::iter::once(program.display().to_string())
        .chain(words.iter().skip(1).cloned())
        .collect();
    let env = dunnock_tools::boxed_environment(more);
    let folder = workspace.display().to_string();
    let launcher = std::sync::Arc::new(Launcher::new("/proc/self/exe".into(), &[LAUNCH]));
    let fds = vec![
        std::io::stdin().as_fd().try_clone_to_owned()?,
        std::io::stdout().as_fd().try_clone_to_owned()?,
        std::io::stderr().as_fd().try_clone_to_owned()?,
    ];
    let run = Run { words, folder, env, spec: Some(spec), ..Run::default() };
    let mut running = launcher.start(run, fds)?;
    match running.ended().await {
        Ended::Exited { code, signal, .. } | Ended::Continues { code, signal } => {
            let code = code.or(signal.map(|s| 128 + s)).unwrap_or(1);
            Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
        }
        Ended::Refused(why) => anyhow::bail!("{name} was not run: {why}"),
        Ended::Lost => anyhow::bail!("the outcome of {name} is unknown: the launcher died"),
    }
}

//! Where things are on this machine and what a sandboxed command can see of them: turns a workspace
//! into a [`SandboxSpec`].

use crate::git_names::GIT_ACTS_ON;
use crate::linux::{Isolation, Layer, SandboxSpec};
use crate::outer::GitVariables;
use crate::repositories;
use crate::survey::{Found, Index, PASSED_OVER, Survey};
use dunnock_private::create_folder;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Visible parts of the home folder: toolchains and git's ignore and attribute files. The git
/// identity comes from a generated file.
const SHOWN: &[&str] = &[
    ".rustup",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rvm",
    ".sdkman",
    ".asdf",
    ".volta",
    ".bun/bin",
    ".deno/bin",
    ".fnm",
    ".goenv",
    ".jenv",
    ".ghcup",
    ".opam",
    ".juliaup",
    ".dotnet",
    ".elan",
    ".local/bin",
    ".local/lib",
    ".local/share/mise",
    ".local/share/uv",
    ".local/share/pnpm",
    ".local/share/fnm",
    "go/bin",
    "bin",
    "miniconda3",
    "miniforge3",
    "anaconda3",
    ".npm-global",
    ".config/git/ignore",
    ".config/git/attributes",
];
/// The user's own downloads: readable, with changes kept per workspace. The listed files in them
/// stay hidden.
const LAYERED: &[(&str, &str, &[&str])] = &[
    ("CARGO_HOME", ".cargo", &["credentials", "credentials.toml"]),
    ("GOMODCACHE", "go/pkg/mod", &[]),
    ("", ".m2/repository", &[]),
];
/// Caches with a folder per workspace, and the variable that sets each.
const CACHES: &[(&str, &str)] = &[
    ("XDG_CACHE_HOME", "xdg"),
    ("npm_config_cache", "npm"),
    ("PIP_CACHE_DIR", "pip"),
    ("GOCACHE", "go-build"),
    ("GRADLE_USER_HOME", "gradle"),
];
/// Settings of git for a command with more access. It runs no hook, no file monitor and no helper
/// of a transport, does not enter submodules, whose configuration can be planted, and uses no
/// repository by its path, because git drops these settings there.
const GIT_WITHOUT_PROGRAMS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("protocol.ext.allow", "never"),
    ("protocol.file.allow", "never"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
    ("submodule.recurse", "false"),
    ("safe.bareRepository", "explicit"),
];
/// What the user allowed a command beyond the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Opened {
    /// The machine's network.
    pub network: bool,
    /// Secret files in the workspace.
    pub secrets: bool,
    /// Files in the workspace that other programs act on.
    pub protected: bool,
    /// Of those, only the configuration of git repositories.
    pub git_config: bool,
    /// It is a git command that replaces files of the work tree: protected names are not read-only
    /// while it runs. This is no more access, because what it changes is checked afterwards.
    pub checkout: bool,
    /// The whole repository that contains the workspace: the sandbox is that of its work tree.
    pub repository: bool,
}

impl Opened {
    /// Whether the command has more access than commands that nobody approved.
    #[must_use]
    pub fn more(self) -> bool {
        Self { checkout: false, ..self } != Self::default()
    }
}

/// Where things are on this machine.
pub struct Layout {
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The folders in `PATH`.
    pub path: Vec<PathBuf>,
    /// Environment variables that say where a toolchain keeps its downloads.
    pub variables: BTreeMap<String, PathBuf>,
    /// Dunnock's own folders, which no command can see.
    pub own: Vec<PathBuf>,
    /// Parent of the per-workspace caches.
    pub boxes: PathBuf,
    /// Additional paths that the user lets every command read.
    pub readable: Vec<PathBuf>,
    /// Additional paths that the user lets every command write.
    pub writable: Vec<PathBuf>,
    /// Names of files and folders in a workspace that other programs act on, each as a list of path
    /// components in lower case. A command cannot change those that exist.
    pub protected: Vec<Vec<String>>,
    /// The same, for names that a command may touch while it runs: a change is reverted afterwards.
    /// A name may begin with `*`.
    pub watched: Vec<Vec<String>>,
    /// The user's own configuration files of git.
    pub git_configs: Vec<PathBuf>,
    /// Whether a file of this name usually holds keys.
    pub secret: fn(&str) -> bool,
    /// Whether the user denies all access to this path in the workspace.
    pub denied: Box<dyn Fn(&Path) -> bool + Send + Sync>,
    /// Whether commands may write to the workspace at all.
    pub writes: bool,
    /// The repository that the user names in the environment.
    pub git_variables: GitVariables,
    /// Cached search results for each workspace and each folder in it.
    pub found: Mutex<HashMap<PathBuf, HashMap<PathBuf, Found>>>,
    /// Cached contents of the index of each repository, as of its last change.
    pub indexes: Mutex<HashMap<PathBuf, Index>>,
    /// Secret files that each repository around a workspace tracked when it was first looked at.
    pub tracked_secrets: Mutex<HashMap<PathBuf, Arc<BTreeSet<PathBuf>>>>,
    /// Cached parts of sandboxes that are the same for every command.
    pub bases: Mutex<Vec<Base>>,
    /// Hashes of versions of watched files that were there when a command began.
    pub versions: Mutex<BTreeSet<[u8; 32]>>,
}

/// The part of a sandbox that is the same for every command with more access, or without.
#[derive(Debug, Clone)]
pub struct Base {
    more: bool,
    spec: SandboxSpec,
    env: Vec<(String, String)>,
}

impl Layout {
    /// The sandbox for a workspace, and the environment variables that a command in it needs.
    ///
    /// # Errors
    /// If the cache folders cannot be created.
    pub fn spec(
        &self,
        isolation: Isolation,
        workspace: &Path,
        opened: Opened,
    ) -> io::Result<(SandboxSpec, Vec<(String, String)>)> {
        self.spec_for(isolation, workspace, opened, &self.survey(workspace))
    }

    /// The same, with what was found in the workspace.
    ///
    /// # Errors
    /// If the cache folders cannot be created.
    pub fn spec_for(
        &self,
        isolation: Isolation,
        workspace: &Path,
        opened: Opened,
        all: &Survey,
    ) -> io::Result<(SandboxSpec, Vec<(String, String)>)> {
        let same = |base: &&Base| {
            base.more == opened.more()
                && base.spec.workspace == workspace
                && base.spec.isolation == isolation
        };
        let known = {
            let bases = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
            bases.iter().find(same).cloned()
        };
        let Base { mut spec, mut env, .. } = match known {
            Some(base) => base,
            None => {
                let base = self.base(isolation, workspace, opened.more())?;
                self.bases.lock().unwrap_or_else(PoisonError::into_inner).push(base.clone());
                base
            }
        };
        spec.network = opened.network;
        // Not in the base: a command can create a `.git` in the workspace.
        let outer = self.outer(workspace);
        let mut git = Survey::default();
        if let Some(outer) = &outer {
            env.extend(outer.env());
            spec.readable.extend(outer.readable());
            if outer.top != workspace {
                spec.readable.push(outer.top.clone());
                spec.hidden.extend(self.hidden_around(workspace, outer));
            } else if self.writes {
                // The git folder is a part of this work tree, and guarded like one in it.
                spec.repository = outer.writable();
                git = self.survey_git_folder(&outer.common);
            }
        }
        spec.build.retain(|place| place.symlink_metadata().is_ok_and(|about| about.is_dir()));
        let guarded = if opened.checkout { &Vec::new() } else { &all.guarded };
        if !opened.protected {
            for folder in guarded {
                self.protected.iter().for_each(|names| protect(&mut spec, folder, names));
            }
            for repository in all.repositories.iter().chain(&git.repositories) {
                let common = outer.as_ref().is_some_and(|outer| outer.common == *repository);
                let whole = repository.ends_with(".git") || common;
                let own = |name: &&&str| !(opened.git_config && **name == "config" && whole);
                for name in GIT_ACTS_ON.iter().filter(own) {
                    let names: Vec<String> = name.split('/').map(str::to_owned).collect();
                    protect(&mut spec, repository, &names);
                }
            }
            let named = all.named_by_git.iter().chain(&git.named_by_git);
            for path in all.git_files.iter().chain(named) {
                close(&mut spec, path);
            }
            // What belongs to the main work tree of a linked one.
            for outer in outer.iter().filter(|outer| outer.common != outer.git) {
                ["HEAD", "index"]
                    .iter()
                    .for_each(|name| close(&mut spec, &outer.common.join(name)));
            }
        }
        // Pin the folders above protected paths: otherwise they could be moved and replaced.
        let held = spec.closed.iter().chain(&all.secret).chain(guarded);
        let roots: Vec<&Path> =
            spec.repository.iter().map(PathBuf::as_path).chain([workspace]).collect();
        let below = |up: &Path| roots.iter().any(|root| up.starts_with(root) && up != *root);
        let leads = held.flat_map(|place| place.ancestors().skip(1).take_while(|up| below(up)));
        let leads: Vec<PathBuf> =
            leads.map(Path::to_path_buf).chain(guarded.iter().cloned()).collect();
        spec.pinned.extend(leads);
        spec.pinned.retain(|place| {
            !roots.contains(&place.as_path())
                && place.symlink_metadata().is_ok_and(|about| about.is_dir())
        });
        spec.pinned.sort();
        spec.pinned.dedup();
        spec.closed.sort();
        spec.closed.dedup();
        spec.hidden.push(workspace.join(".dunnock"));
        spec.hidden.extend(all.sockets.iter().cloned());
        if !opened.secrets {
            spec.hidden.extend(all.secret.iter().cloned());
        }
        Ok((spec, env))
    }

    /// Our own folder for a workspace.
    #[must_use]
    pub fn own_folder(&self, workspace: &Path) -> PathBuf {
        self.boxes.join(name_of(workspace))
    }

    /// The part that is the same for every command. A command with more access has temporary files
    /// and layers of its own: what other commands can write, it does not read.
    fn base(&self, isolation: Isolation, workspace: &Path, more: bool) -> io::Result<Base> {
        let own = self.own_folder(workspace);
        let approved = own.join("approved");
        let tmp = if more { approved.join("tmp") } else { own.join("tmp") };
        // The programs that use these caches run code of the project anyway.
        let cache = own.join("cache");
        create_folder(&tmp)?;
        let mut env = Vec::new();
        for (variable, name) in CACHES {
            let folder = cache.join(name);
            create_folder(&folder)?;
            env.push(((*variable).to_owned(), folder.to_string_lossy().into_owned()));
        }
        let mut spec = SandboxSpec {
            isolation,
            workspace: workspace.to_path_buf(),
            writes: self.writes,
            build: Vec::new(),
            pinned: Vec::new(),
            closed: Vec::new(),
            hidden: self.own.clone(),
            private: self.home.iter().cloned().collect(),
            readable: self.readable.clone(),
            writable: self.writable.clone(),
            repository: Vec::new(),
            own: Vec::new(),
            layered: Vec::new(),
            tmp: tmp.clone(),
            network: false,
            shares: None,
        };
        spec.writable.push(cache.clone());
        if !self.writes {
            spec.build = PASSED_OVER
                .iter()
                .filter(|name| **name != ".git")
                .map(|name| workspace.join(name))
                .collect();
        }
        for (n, (variable, below, hidden)) in LAYERED.iter().enumerate() {
            let Some(place) = self.place(variable, below) else { continue };
            if !place.is_dir() {
                if !variable.is_empty() {
                    let folder = cache.join(n.to_string());
                    create_folder(&folder)?;
                    env.push(((*variable).to_owned(), folder.to_string_lossy().into_owned()));
                }
                continue;
            }
            let folder = |name: &str, of: &Path| -> io::Result<PathBuf> {
                let folder = of.join(format!("{name}-{n}"));
                create_folder(&folder)?;
                Ok(folder)
            };
            let of = if more { &approved } else { &own };
            let (above, work) = (folder("above", of)?, folder("work", of)?);
            let between = if more { None } else { Some(folder("above", &approved)?) };
            spec.hidden.extend(hidden.iter().map(|name| place.join(name)));
            spec.layered.push(Layer { below: place, between, above, work });
        }
        let layered = |name: &str| LAYERED.iter().any(|(variable, ..)| *variable == name);
        let named = self
            .variables
            .iter()
            .filter(|(name, place)| !layered(name) && place.exists() && !self.is_home(place));
        spec.readable.extend(named.map(|(_, place)| place.clone()));
        spec.readable.extend(self.path.iter().filter_map(|place| toolchain(place)));
        if let Some(home) = &self.home {
            spec.readable
                .extend(SHOWN.iter().map(|name| home.join(name)).filter(|place| place.exists()));
            let shown = |place: &&PathBuf| place.starts_with(home) && **place != *home;
            let of_path: Vec<PathBuf> =
                self.path.iter().filter(shown).filter(|place| place.is_dir()).cloned().collect();
            spec.readable.extend(of_path);
        }
        spec.readable.extend(
            self.path.iter().filter(|place| place.is_absolute() && !self.at_home(place)).cloned(),
        );
        let covered: Vec<PathBuf> = spec.layered.iter().map(|layer| layer.below.clone()).collect();
        spec.readable.retain(|place| !covered.iter().any(|over| place.starts_with(over)));
        spec.readable.sort();
        spec.readable.dedup();
        if isolation != Isolation::A {
            env.push(("TMPDIR".into(), tmp.to_string_lossy().into_owned()));
        }
        if let Some(text) =
            self.home.as_ref().and_then(|home| tame_gitconfig(&home.join(".gitconfig")))
        {
            // Not in a cache, where a command could change it for a later one.
            let file = own.join("gitconfig");
            dunnock_private::replace(&file, text.as_bytes())?;
            env.push(("GIT_CONFIG_GLOBAL".into(), file.to_string_lossy().into_owned()));
            spec.own.push(file);
        }
        if more {
            env.extend(self.approved_env(workspace));
        }
        // Drop paths below others that are already readable.
        let all = std::mem::take(&mut spec.readable);
        for place in all {
            if !spec.readable.iter().any(|over| place.starts_with(over)) {
                spec.readable.push(place);
            }
        }
        Ok(Base { more, spec, env })
    }

    /// Whether commands that nobody approved can write to this path.
    fn is_plantable(&self, workspace: &Path, path: &Path) -> bool {
        let real = |place: &Path| place.canonicalize().unwrap_or_else(|_| place.to_path_buf());
        let outer = self.outer(workspace);
        let outer = outer.iter().flat_map(|outer| [outer.top.as_path(), outer.common.as_path()]);
        let writable = self.writable.iter().map(PathBuf::as_path).chain([workspace, &self.boxes]);
        let writable = writable.chain(outer);
        // As it is written, too: a link in the workspace can be replaced.
        writable.map(real).any(|place| real(path).starts_with(&place) || path.starts_with(&place))
    }

    /// The folders in which a command with more access finds programs: none that another command
    /// can write to.
    #[must_use]
    pub fn approved_path(&self, workspace: &Path) -> Vec<PathBuf> {
        let safe = |place: &&PathBuf| {
            place.is_absolute() && place.is_dir() && !self.is_plantable(workspace, place)
        };
        self.path.iter().filter(safe).filter_map(|place| place.canonicalize().ok()).collect()
    }

    /// Whether folders of `PATH` are missing for a command with more access.
    #[must_use]
    pub fn shortens_path(&self, workspace: &Path) -> bool {
        self.path.iter().any(|place| place.is_dir() && self.is_plantable(workspace, place))
    }

    /// The program that a command with more access finds under this name, if any. A link can lead
    /// to a file that another command can write to; that one does not count.
    #[must_use]
    pub fn approved_program(&self, workspace: &Path, name: &str) -> Option<PathBuf> {
        let runs = |file: &PathBuf| {
            file.metadata().is_ok_and(|about| about.is_file() && about.mode() & 0o111 != 0)
        };
        let found = self.approved_path(workspace).into_iter().map(|dir| dir.join(name)).find(runs);
        found.filter(|file| !self.is_plantable(workspace, file))
    }

    /// Variables of a command with more access: where it finds programs, and no hooks of git. What
    /// names a folder that other commands can write to is set to nothing.
    #[must_use]
    pub fn approved_env(&self, workspace: &Path) -> Vec<(String, String)> {
        let path = std::env::join_paths(self.approved_path(workspace)).unwrap_or_default();
        let mut env = vec![("PATH".to_owned(), path.to_string_lossy().into_owned())];
        for (n, (key, value)) in GIT_WITHOUT_PROGRAMS.iter().enumerate() {
            env.push((format!("GIT_CONFIG_KEY_{n}"), (*key).to_owned()));
            env.push((format!("GIT_CONFIG_VALUE_{n}"), (*value).to_owned()));
        }
        env.push(("GIT_CONFIG_COUNT".into(), GIT_WITHOUT_PROGRAMS.len().to_string()));
        let layered = |name: &str| LAYERED.iter().any(|(variable, ..)| *variable == name);
        let named = self
            .variables
            .iter()
            .filter(|(name, place)| !layered(name) && self.is_plantable(workspace, place));
        env.extend(named.map(|(name, _)| (name.clone(), String::new())));
        env
    }

    /// The remotes of the workspace's repository, each with its name and its address.
    #[must_use]
    pub fn remotes(&self, workspace: &Path) -> Vec<(String, String)> {
        let own = repositories::at(&workspace.join(".git"));
        let git = self.outer(workspace).map(|outer| outer.git).or(own);
        git.map(|git| repositories::remotes(&git)).unwrap_or_default()
    }

    /// The credential helpers of the user's own configuration of git.
    #[must_use]
    pub fn credential_helpers(&self) -> Vec<String> {
        self.git_configs.iter().flat_map(|file| repositories::helpers(file)).collect()
    }

    /// Lets a command use the credential helpers of the user's own configuration.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn with_credential_helpers(
        &self,
        workspace: &Path,
        spec: &mut SandboxSpec,
    ) -> io::Result<(String, String)> {
        let texts = self.git_configs.iter().filter_map(|file| std::fs::read_to_string(file).ok());
        let text: String = texts.map(|text| git_settings(&text, CREDENTIALS)).collect();
        let file = self.own_folder(workspace).join("gitconfig-login");
        dunnock_private::replace(&file, text.as_bytes())?;
        spec.own.push(file.clone());
        Ok(("GIT_CONFIG_GLOBAL".into(), file.to_string_lossy().into_owned()))
    }

    fn is_home(&self, place: &Path) -> bool {
        place.parent().is_none() || self.home.as_ref().is_some_and(|home| home.starts_with(place))
    }

    fn at_home(&self, place: &Path) -> bool {
        self.home.as_ref().is_some_and(|home| place.starts_with(home))
    }

    fn place(&self, variable: &str, below: &str) -> Option<PathBuf> {
        self.variables.get(variable).cloned().or_else(|| Some(self.home.as_ref()?.join(below)))
    }
}

/// The toolchain that a `PATH` folder belongs to, wherever it is installed: `/x/.pyenv` for
/// `/x/.pyenv/shims`.
fn toolchain(place: &Path) -> Option<PathBuf> {
    let one = |name: &&&str| !name.contains('/') && name.starts_with('.');
    let top = |path: &&Path| {
        SHOWN.iter().filter(one).any(|name| path.file_name().is_some_and(|last| last == *name))
    };
    place.ancestors().find(top).filter(|top| top.is_dir()).map(Path::to_path_buf)
}

/// Makes a path below a folder read-only and pins the folders above it.
fn protect(spec: &mut SandboxSpec, folder: &Path, names: &[String]) {
    let mut place = folder.to_path_buf();
    for (depth, name) in names.iter().enumerate() {
        if depth > 0 {
            spec.pinned.push(place.clone());
        }
        place.push(name);
        if place.symlink_metadata().is_err() {
            return;
        }
    }
    close(spec, &place);
}

/// Makes an existing path read-only.
fn close(spec: &mut SandboxSpec, place: &Path) {
    let Ok(about) = place.symlink_metadata() else { return };
    // The watcher protects the link itself; here its target is made read-only.
    let real = match about.is_symlink() {
        true => place.canonicalize().ok().filter(|real| {
            let mut roots = spec.repository.iter().chain([&spec.workspace]);
            roots.any(|root| real.starts_with(root))
        }),
        false => Some(place.to_path_buf()),
    };
    spec.closed.extend(real);
}

/// Sections of git's configuration that a sandboxed command may see: identity and preferences.
const PREFERENCES: &[&str] = &[
    "user", "init", "pull", "merge", "rebase", "diff", "color", "branch", "safe", "advice",
    "column", "log",
];
/// With the user's login, also these. They name programs of the user's own.
const CREDENTIALS: &[&str] = &["credential"];

/// The part of the user's git config that a sandboxed command may see.
fn tame_gitconfig(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| git_settings(&text, &[]))
}

/// The preferences of a configuration of git, without URLs and programs, and these sections whole.
fn git_settings(text: &str, whole: &[&str]) -> String {
    let mut kept = String::new();
    let (mut inside, mut all) = (false, false);
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(section) = trimmed.strip_prefix('[') {
            let name =
                section.split([' ', ']', '.', '"']).next().unwrap_or_default().to_lowercase();
            all = whole.contains(&name.as_str());
            inside = PREFERENCES.contains(&name.as_str())
                && trimmed.ends_with(']')
                && !section.contains('"');
        }
        let plain = !trimmed.contains("://") && !trimmed.contains('!') && !trimmed.ends_with('\\');
        let runs = ["signingkey", "external", "driver", "textconv", "tool"]
            .iter()
            .any(|word| trimmed.to_lowercase().starts_with(word));
        if all || inside && plain && !runs {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// A folder name for a workspace: its last component plus a hash.
fn name_of(workspace: &Path) -> String {
    use std::hash::{Hash as _, Hasher as _};
    let mut hasher = std::hash::DefaultHasher::new();
    workspace.hash(&mut hasher);
    let last =
        workspace.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain: String =
        last.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(24).collect();
    format!("{plain}-{:016x}", hasher.finish())
}

//! Answers the requests of the server: settings and ports of folders, saved files, the stateless
//! service.

use crate::cli::undo::{self, SessionHistory};
use crate::compose::{self, Composed};
use crate::config::rules::{self, SavedRule};
use crate::config::settings::{Settings, Value};
use crate::config::{load, paths};
use crate::files;
use crate::host::tui_host::STEPS;
use crate::host::{environment, login_host};
use crate::login::{self, Choice, KeyState, Login};
use crate::view::output;
use dunnock_core::State;
use dunnock_engine::{FileLocks, Ports};
use dunnock_mcp::ServerOrigin;
use dunnock_model::{ModelClient, Prompts, Service, TryError, service_offers};
use dunnock_ports::{BoxFuture, Store};
use dunnock_proto::{
    Config, ConfigPatch, FileAccess, Hash, Isolation, Mode, Price, Sandbox, SessionId,
};
use dunnock_serve::{
    Change, Changes, CustomCommand, Host, McpServerRow, McpServerState, Once, Point, ProviderKey,
    ProviderRow, Refusal, RuleRow, SetRule, SetUpError, Start, UndoPreview,
};
use dunnock_store::Memory;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The most folders with their own settings that are cached.
const OTHERS: usize = 64;

type FlagValues = Vec<(&'static str, Value)>;

/// The host of the server.
pub(crate) struct ServeHost {
    /// The folder in which the server was started.
    workspace: PathBuf,
    flags: FlagValues,
    /// For folders without their own settings.
    base: Composed,
    /// For folders with their own settings, with the hash of those settings.
    others: Mutex<HashMap<PathBuf, (Hash, Composed)>>,
    service: Arc<ModelClient>,
}

fn conflict(error: anyhow::Error) -> Refusal {
    Refusal::Conflict(format!("{error:#}"))
}

impl ServeHost {
    pub(crate) async fn open(workspace: PathBuf, flags: FlagValues) -> anyhow::Result<Self> {
        let settings = load::settings(None, false, flags.clone())?;
        let mut base = compose::open(&settings, None).await?;
        base.confine(&settings, Sandbox::Auto)?;
        let service = Arc::new(service(&load::settings(Some(&workspace), false, flags.clone())?)?);
        Ok(Self { workspace, flags, base, others: Mutex::default(), service })
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.base.ports.store.clone()
    }

    /// The adapters for a folder.
    fn work(&self, folder: &Path) -> anyhow::Result<Composed> {
        let Some(brings) = crate::config::trust::brings(folder) else {
            return Ok(self.base.clone());
        };
        let trusted = [u8::from(crate::config::trust::is_trusted(folder))];
        let brings = Hash::of_parts(&[brings.to_string().as_bytes(), &trusted]);
        let others = || self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, work)) = others().get(folder).filter(|(known, _)| *known == brings) {
            return Ok(work.clone());
        }
        let work = self.base.beside(&self.of(folder)?)?;
        let mut others = others();
        if others.len() >= OTHERS {
            others.clear(); // users hold their own clones; the rest is rebuilt when needed
        }
        others.insert(folder.to_path_buf(), (brings, work.clone()));
        Ok(work)
    }

    fn of(&self, folder: &Path) -> anyhow::Result<Settings> {
        load::settings(Some(folder), false, self.flags.clone())
    }

    /// The ports for a folder.
    pub(crate) fn ports(&self, folder: &str) -> Result<Ports, String> {
        self.work(Path::new(folder)).map(|work| work.ports).map_err(|error| format!("{error:#}"))
    }

    fn place(&self, given: Option<&str>) -> Result<PathBuf, Refusal> {
        match given {
            Some(text) if !Path::new(text).is_absolute() => Err(Refusal::NotFound(format!(
                "{text:?} is not an absolute path; give the full path of a folder"
            ))),
            Some(text) => paths::workspace(Some(Path::new(text)))
                .map_err(|e| Refusal::NotFound(format!("{e:#}"))),
            None => Ok(self.workspace.clone()),
        }
    }

    /// Describes how a new session in a folder would start.
    async fn look_around(&self, given: Option<&str>) -> Result<Start, Refusal> {
        let folder = self.place(given)?;
        let trusted = crate::config::trust::is_trusted(&folder);
        let mut settings = self.of(&folder).map_err(conflict)?;
        let work = self.work(&folder).map_err(conflict)?;
        let (model, missing) = match compose::model(&mut settings, &work.client).await {
            Ok(model) => match work.client.knows(&model) {
                Ok(()) => (Some(model), Vec::new()),
                Err(why) => (None, vec![why]),
            },
            Err(error) if settings.model.value.is_some() => (None, vec![format!("{error:#}")]),
            // The page itself leads through it.
            Err(_) => (None, vec!["to set up a model in a terminal: dunnock login".into()]),
        };
        let level =
            if settings.sandbox.value == Sandbox::Off { Isolation::D } else { work.ports.level };
        let mut notes = environment::brought(&folder, trusted);
        let around = work.repository_around(&folder);
        notes.extend(around.map(|top| environment::repository_note(&top)));
        let config = Config {
            mode: settings.approve.value,
            sandbox: settings.sandbox.value,
            ..Config::default()
        };
        notes.extend(compose::all_asks(&config, level).map(str::to_owned));
        let own = |own: dunnock_tui::Own| CustomCommand {
            name: own.name,
            description: own.about,
            text: own.text,
        };
        Ok(Start {
            version: crate::APP.into(),
            folder: environment::folder(&folder),
            branch: environment::branch(&folder),
            isolation: level,
            model,
            mode: settings.approve.value,
            effort: settings.effort.value.unwrap_or(compose::APP_EFFORT),
            notes,
            missing,
            commands: environment::own_commands(&folder, trusted).into_iter().map(own).collect(),
            workspace: folder.to_string_lossy().into_owned(),
        })
    }

    async fn new_session(
        &self,
        given: Option<&str>,
        set: &ConfigPatch,
    ) -> Result<(String, Config), Refusal> {
        let folder = self.place(given)?;
        let config = async {
            let mut settings = self.of(&folder)?;
            paths::keeps_its_own(&folder, &settings)?;
            let work = self.work(&folder)?;
            let model = match &set.model {
                Some(model) => model.clone(),
                None => compose::model(&mut settings, &work.client).await?,
            };
            let mut config = compose::config(&settings, &work.client, &folder, model, true)?;
            if settings.max_steps.is_default() {
                config.max_steps = STEPS;
            }
            if settings.effort.value.is_none() {
                config.effort = Some(compose::APP_EFFORT);
            }
            let config = config.with(set);
            self.keepable(&work, &config)?;
            anyhow::Ok(config)
        };
        let config = config.await.map_err(conflict)?;
        Ok((folder.to_string_lossy().into_owned(), config))
    }

    fn keepable(&self, work: &Composed, config: &Config) -> anyhow::Result<()> {
        work.client.knows(&config.model).map_err(|why| anyhow::anyhow!(why))?;
        let level = if config.sandbox == Sandbox::Off { Isolation::D } else { work.ports.level };
        compose::keepable(config, level, work.ports.day_budget)
    }

    async fn at(&self, session: &SessionId) -> anyhow::Result<SessionHistory> {
        let folder = self
            .base
            .ports
            .store
            .listed(session)
            .await?
            .map(|row| row.workspace)
            .unwrap_or_default();
        SessionHistory::of(self.work(Path::new(&folder))?, session.clone()).await
    }

    /// Sets up a model with the user's own settings, whatever the folder.
    fn login(&self) -> anyhow::Result<Login> {
        Login::new(self.flags.clone())
    }

    async fn login_rows(&self) -> anyhow::Result<Vec<ProviderRow>> {
        let login = self.login()?;
        let row = |choice: Choice| ProviderRow {
            warning: login.provider(&choice.name).ok().as_ref().and_then(login::unencrypted),
            key: match choice.key {
                KeyState::Variable(_) => ProviderKey::Variable,
                KeyState::Saved => ProviderKey::Saved,
                KeyState::Missing => ProviderKey::Missing,
                KeyState::NotNeeded => ProviderKey::NotNeeded,
            },
            name: choice.name,
            about: choice.about,
            address: choice.address,
        };
        Ok(login.choices().await?.into_iter().map(row).collect())
    }

    /// Uses the keys that are saved now, for sessions that are open, too.
    fn reload_keys(&self) -> anyhow::Result<()> {
        self.base.reload_keys(&mut load::settings(None, false, self.flags.clone())?);
        let settings = self.of(&self.workspace)?;
        let (providers, unusable) = settings.providers(&paths::text_var);
        self.service.replace_providers(providers, unusable);
        let others: Vec<(PathBuf, Composed)> = {
            let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
            others.iter().map(|(folder, (_, work))| (folder.clone(), work.clone())).collect()
        };
        for (folder, work) in others {
            work.reload_keys(&mut self.of(&folder)?);
        }
        Ok(())
    }

    fn one_call(&self) -> anyhow::Result<Once> {
        let settings = self.of(&self.workspace)?;
        if settings.budget_day.value.is_some() {
            anyhow::bail!(
                "budget_day is set, but the stateless service records no costs and cannot enforce \
                 it. Remove budget_day, or use sessions"
            );
        }
        let folder = self.workspace.to_string_lossy().into_owned();
        let composed = self.work(&self.workspace)?;
        let (base, runtime) = (composed.ports, composed.runtime);
        let model = settings.model.value.clone();
        let model = model.or_else(|| compose::model_by_key(&mut settings.clone()));
        let model = model.ok_or_else(|| anyhow::anyhow!(compose::without_model(&self.service)))?;
        self.service.knows(&model).map_err(|why| anyhow::anyhow!(why))?;
        let place = tempfile::Builder::new().prefix("once").rand_bytes(8).tempdir_in(&runtime)?;
        let ports = Ports {
            store: Arc::new(Memory::default()),
            model: Arc::new(Service(self.service.clone())),
            files: None,
            checkpoints: None,
            ownership: Arc::new(FileLocks::new(
                place.path().to_path_buf(),
                place.path().to_path_buf(),
                crate::APP,
            )),
            locks: place.path().to_path_buf(),
            ..base
        };
        let config = compose::config(&settings, &self.service, &self.workspace, model, false)?;
        let config = Config {
            profile: "default".into(),
            mode: if config.mode == Mode::Read { Mode::Read } else { Mode::Edits },
            max_steps: 1,
            verify: Vec::new(),
            checkpoints: false,
            file_access: FileAccess::Workspace,
            ..config
        };
        Ok(Once { ports, workspace: folder, config, holds: Box::new(place) })
    }
}

fn set_up_error(error: TryError) -> SetUpError {
    SetUpError { error: error.words, needs_key: error.needs_key }
}

/// Changes to the user's rules since the session received them: new deny rules are added and
/// removed allow rules are dropped. Deny rules set by a client stay.
fn rules_since(folder: &Path, config: &Config) -> anyhow::Result<Option<ConfigPatch>> {
    let (allow, denied) = rules::load()?.of_folder(folder);
    let mut deny = config.deny.clone();
    deny.extend(denied.into_iter().filter(|rule| !config.deny.contains(rule)));
    let patch = ConfigPatch {
        deny: (deny != config.deny).then_some(deny),
        allow: (allow != config.allow).then_some(allow),
        // Somebody sits at the browser.
        unattended: config.unattended.then_some(false),
        deadline: config.deadline.map(|_| None),
        max_steps: compose::steps_without_deadline(config),
        ..ConfigPatch::default()
    };
    Ok((patch != ConfigPatch::default()).then_some(patch))
}

/// The model client of the stateless service, which has its own four tools and its own prompt.
fn service(settings: &Settings) -> anyhow::Result<ModelClient> {
    compose::client_with(settings, service_offers, Prompts::for_service)
}

impl Host for ServeHost {
    fn begin<'a>(
        &'a self,
        workspace: Option<&'a str>,
        set: &'a ConfigPatch,
    ) -> BoxFuture<'a, Result<(String, Config), Refusal>> {
        Box::pin(self.new_session(workspace, set))
    }

    fn settings_to_adapt(&self, state: &State) -> Result<Option<ConfigPatch>, Refusal> {
        let folder = state.workspace.clone().unwrap_or_default();
        if !Path::new(folder.as_ref()).is_dir() {
            let why = format!(
                "the folder of this session, {folder}, no longer exists. Restore it to continue"
            );
            return Err(Refusal::Conflict(why));
        }
        let fits = || {
            let work = self.work(Path::new(folder.as_ref()))?;
            let patch = rules_since(Path::new(folder.as_ref()), &state.config)?;
            let config = patch
                .as_ref()
                .map_or_else(|| state.config.as_ref().clone(), |patch| state.config.with(patch));
            self.keepable(&work, &config)?;
            anyhow::Ok(patch)
        };
        fits().map_err(conflict)
    }

    fn folder(&self, given: Option<&str>) -> Result<String, Refusal> {
        self.place(given).map(|folder| folder.to_string_lossy().into_owned())
    }

    fn start<'a>(&'a self, workspace: Option<&'a str>) -> BoxFuture<'a, Result<Start, Refusal>> {
        Box::pin(self.look_around(workspace))
    }

    fn models(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async { environment::models(&self.base.client).await })
    }

    fn providers(&self) -> BoxFuture<'_, Result<Vec<ProviderRow>, Refusal>> {
        Box::pin(async { self.login_rows().await.map_err(conflict) })
    }

    fn provider_models<'a>(
        &'a self,
        provider: &'a str,
        key: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Result<Vec<String>, SetUpError>, Refusal>> {
        Box::pin(async move {
            let login = self.login().map_err(conflict)?;
            let listed = async {
                let provider = login_host::provider_with(&login, provider, key)?;
                login.models_to_choose(&provider).await
            };
            Ok(listed.await.map_err(set_up_error))
        })
    }

    fn use_model<'a>(
        &'a self,
        provider: &'a str,
        key: Option<&'a str>,
        model: &'a str,
    ) -> BoxFuture<'a, Result<Result<(), SetUpError>, Refusal>> {
        Box::pin(async move {
            let login = self.login().map_err(conflict)?;
            let tried = async {
                let provider = login_host::provider_with(&login, provider, key)?;
                login.try_model(&provider, model).await?;
                Ok(provider)
            };
            match tried.await {
                Ok(provider) => {
                    login.save(&provider, model).map_err(conflict)?;
                    self.reload_keys().map_err(conflict)?;
                    Ok(Ok(()))
                }
                Err(error) => Ok(Err(set_up_error(error))),
            }
        })
    }

    fn price(&self, workspace: &str, model: &str) -> Result<Option<Price>, Refusal> {
        let folder = Path::new(workspace);
        let work = self.work(folder).map_err(conflict)?;
        work.client.knows(model).map_err(Refusal::Conflict)?;
        let known = self.of(folder).map_err(conflict)?.price_of(model);
        Ok(known.or_else(|| work.client.price(model)))
    }

    fn day_budget(&self) -> Option<u64> {
        self.base.ports.day_budget
    }

    fn is_picture(&self, bytes: &[u8]) -> bool {
        dunnock_proto::picture_kind(bytes).is_some()
    }

    fn undo<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<UndoPreview, Refusal>> {
        Box::pin(async move {
            let at = self.at(session).await.map_err(conflict)?;
            let (to, scope, summary) = undo::undo_way(&at).await.map_err(conflict)?;
            Ok(UndoPreview { to, scope, summary })
        })
    }

    fn servers(&self, workspace: Option<&str>) -> Result<Vec<McpServerRow>, Refusal> {
        let folder = self.place(workspace)?;
        let settings = self.of(&folder).map_err(conflict)?;
        let rows = crate::cli::mcp::rows(&settings).map_err(conflict)?;
        let row = |row: &crate::cli::mcp::Row<'_>| McpServerRow {
            name: row.server.name.clone(),
            project_file: match &row.server.origin {
                ServerOrigin::Person => None,
                ServerOrigin::Project(file) => Some(file.clone()),
            },
            target: row.server.what(),
            access: row.server.granted(),
            tools: row.tools.map(|tools| tools as u64),
            sessions: row
                .running
                .iter()
                .map(|(session, state)| McpServerState {
                    session: session.to_string(),
                    state: state.clone(),
                })
                .collect(),
        };
        Ok(rows.iter().map(row).collect())
    }

    fn rules(&self) -> Result<Vec<RuleRow>, Refusal> {
        let saved = rules::load().map_err(conflict)?;
        let all = |list: Vec<SavedRule>, allow| {
            list.into_iter().map(move |saved| RuleRow {
                words: saved.rule.words(),
                place: saved.place(),
                project: saved.project.map(|path| path.to_string_lossy().into_owned()),
                rule: saved.rule,
                allow,
            })
        };
        Ok(all(saved.allow, true).chain(all(saved.deny, false)).collect())
    }

    fn rule(&self, set: &SetRule) -> Result<(), Refusal> {
        let project = set.project.as_deref();
        match (set.allow, set.active) {
            (true, true) => {
                // As sessions name their folder, so that it applies to them.
                let project = project.map(|path| self.place(Some(path))).transpose()?;
                rules::allow(&set.rule, project.as_deref()).map_err(conflict)
            }
            (_, false) => {
                let saved =
                    SavedRule { rule: set.rule.clone(), project: project.map(PathBuf::from) };
                rules::revoke(&saved, set.allow).map_err(conflict)
            }
            (false, true) => {
                Err(Refusal::Conflict("to add a deny rule, use: dunnock rules deny".into()))
            }
        }
    }

    fn files(&self, workspace: &str) -> Vec<String> {
        files::files(Path::new(workspace))
    }

    fn points<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Vec<Point>, Refusal>> {
        Box::pin(async move {
            let at = self.at(session).await.map_err(conflict)?;
            let point = |p: dunnock_tui::RewindPoint| Point {
                step: p.step,
                seq: p.seq,
                title: p.title,
                files: p.files,
                skipped: p.kept,
            };
            Ok(undo::points(&at).await.into_iter().map(point).collect())
        })
    }

    fn diff<'a>(
        &'a self,
        session: &'a SessionId,
        steps: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Changes, Refusal>> {
        Box::pin(async move {
            let at = self.at(session).await.map_err(conflict)?;
            let (from, to, changes) = undo::differences(&at, steps).await.map_err(conflict)?;
            let change = |change: &dunnock_tools::DiffView| Change {
                path: output::one_line(&change.path),
                how: change.how.into(),
                diff: undo::text(change, false),
            };
            Ok(Changes { from, to, changes: changes.iter().map(change).collect() })
        })
    }

    fn redacted(&self, text: &str) -> String {
        dunnock_tools::redacted(text).to_string()
    }

    fn once(&self) -> BoxFuture<'_, Result<Once, Refusal>> {
        Box::pin(async move { self.one_call().map_err(conflict) })
    }
}

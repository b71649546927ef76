//! What the server asks of the program around it: settings and worlds of folders, kept files, the stateless service.

use crate::back::{self, At};
use crate::host::STEPS;
use crate::settings::{Settings, Value};
use crate::work::{self, Work};
use crate::{found, place, say};
use dunnock_core::State;
use dunnock_core::ports::{Log, Wait};
use dunnock_engine::World;
use dunnock_model::{Prompts, Service, Speaker, service_offers};
use dunnock_proto::{Config, ConfigPatch, Hash, Level, Mode, Price, Rule, Sandbox, SessionId};
use dunnock_serve::{Change, Changes, Host, Once, OwnCommand, Point, Refusal, Start, WayBack};
use dunnock_store::Memory;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Folders with settings of their own that are kept ready.
const OTHERS: usize = 64;

type Flags = Vec<(&'static str, Value)>;

/// The program around a server.
pub(crate) struct Serving {
    /// Where it was started.
    workspace: PathBuf,
    flags: Flags,
    /// For folders that bring no settings of their own.
    base: Work,
    /// For those that do, by folder and what they bring.
    others: Mutex<HashMap<PathBuf, (Hash, Work)>>,
    service: Arc<Speaker>,
}

fn conflict(error: anyhow::Error) -> Refusal {
    Refusal::Conflict(format!("{error:#}"))
}

impl Serving {
    pub(crate) async fn open(workspace: PathBuf, flags: Flags) -> anyhow::Result<Self> {
        let settings = place::settings(None, false, flags.clone())?;
        let mut base = work::open(&settings, None).await?;
        base.confine(&settings, Sandbox::Auto);
        let service = Arc::new(service(&place::settings(Some(&workspace), false, flags.clone())?)?);
        Ok(Self { workspace, flags, base, others: Mutex::default(), service })
    }

    pub(crate) fn log(&self) -> Arc<dyn Log> {
        self.base.world.log.clone()
    }

    /// What works in a folder.
    fn work(&self, folder: &Path) -> anyhow::Result<Work> {
        let Ok(brings) = std::fs::read(folder.join(".dunnock/config.toml")) else { return Ok(self.base.clone()) };
        let trusted = [u8::from(crate::trust::is_trusted(folder))];
        let brings = Hash::of_parts(&[&brings, &trusted]);
        let others = || self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, work)) = others().get(folder).filter(|(known, _)| *known == brings) {
            return Ok(work.clone());
        }
        let work = self.base.beside(&self.of(folder)?)?;
        let mut others = others();
        if others.len() >= OTHERS {
            others.clear(); // what is in use is held by whoever uses it; the rest is made again
        }
        others.insert(folder.to_path_buf(), (brings, work.clone()));
        Ok(work)
    }

    /// The settings of a folder.
    fn of(&self, folder: &Path) -> anyhow::Result<Settings> {
        place::settings(Some(folder), false, self.flags.clone())
    }

    /// The world of a folder.
    pub(crate) fn world(&self, folder: &str) -> Result<World, String> {
        self.work(Path::new(folder)).map(|work| work.world).map_err(|error| format!("{error:#}"))
    }

    fn place(&self, given: Option<&str>) -> Result<PathBuf, Refusal> {
        match given {
            Some(text) if !Path::new(text).is_absolute() => {
                Err(Refusal::NotFound(format!("{text:?} is not the whole path of a folder")))
            }
            Some(text) => place::workspace(Some(Path::new(text))).map_err(|e| Refusal::NotFound(format!("{e:#}"))),
            None => Ok(self.workspace.clone()),
        }
    }

    /// What a new session in a folder would be like.
    async fn look_around(&self, given: Option<&str>) -> Result<Start, Refusal> {
        let folder = self.place(given)?;
        let trusted = crate::trust::is_trusted(&folder);
        let mut settings = self.of(&folder).map_err(conflict)?;
        let work = self.work(&folder).map_err(conflict)?;
        let (model, missing) = match work::model(&mut settings, &work.speaker).await {
            Ok(model) => match work.speaker.knows(&model) {
                Ok(()) => (Some(model), Vec::new()),
                Err(why) => (None, vec![why]),
            },
            Err(_) => (None, found::without_model()),
        };
        let level = if settings.sandbox() == Sandbox::Off { Level::D } else { work.world.level };
        let own = |own: dunnock_tui::Own| OwnCommand { name: own.name, about: own.about, text: own.text };
        Ok(Start {
            version: work::APP.into(),
            folder: found::folder(&folder),
            branch: found::branch(&folder),
            level,
            model,
            mode: settings.mode(),
            notes: found::brought(&folder, trusted),
            missing,
            own: found::own_commands(&folder, trusted).into_iter().map(own).collect(),
            workspace: folder.to_string_lossy().into_owned(),
        })
    }

    async fn new_session(&self, given: Option<&str>, set: &ConfigPatch) -> Result<(String, Config), Refusal> {
        let folder = self.place(given)?;
        let config = async {
            let mut settings = self.of(&folder)?;
            place::keeps_its_own(&folder, &settings)?;
            let work = self.work(&folder)?;
            let model = match &set.model {
                Some(model) => model.clone(),
                None => work::model(&mut settings, &work.speaker).await?,
            };
            let mut config = work::config(&settings, &work.speaker, model, true)?;
            if settings.origin("max_steps").as_deref() == Some("default") {
                config.max_steps = STEPS;
            }
            let config = config.with(set);
            self.keepable(&work, &config)?;
            anyhow::Ok(config)
        };
        let config = config.await.map_err(conflict)?;
        Ok((folder.to_string_lossy().into_owned(), config))
    }

    fn keepable(&self, work: &Work, config: &Config) -> anyhow::Result<()> {
        work.speaker.knows(&config.model).map_err(|why| anyhow::anyhow!(why))?;
        let level = if config.sandbox == Sandbox::Off { Level::D } else { work.world.level };
        work::keepable(config, level, work.world.day_budget)
    }

    async fn at(&self, session: &SessionId) -> anyhow::Result<At> {
        let folder = self.base.world.log.listed(session).await?.map(|row| row.workspace).unwrap_or_default();
        At::of(self.work(Path::new(&folder))?, session.clone()).await
    }

    fn one_call(&self) -> anyhow::Result<Once> {
        let settings = self.of(&self.workspace)?;
        if settings.budget_day().is_some() {
            anyhow::bail!(
                "budget_day is set, and a service that keeps nothing cannot keep it. Leave budget_day out, or use sessions"
            );
        }
        let folder = self.workspace.to_string_lossy().into_owned();
        let base = self.work(&self.workspace)?.world;
        let model = settings.text("model").map(str::to_owned);
        let model = model.or_else(|| work::model_by_key(&mut settings.clone()));
        let model =
            model.ok_or_else(|| anyhow::anyhow!("no model is configured; {}", found::without_model().join("; ")))?;
        self.service.knows(&model).map_err(|why| anyhow::anyhow!(why))?;
        let place = tempfile::Builder::new().prefix("once").rand_bytes(8).tempdir_in(&base.runtime)?;
        let world = World {
            log: Arc::new(Memory::default()),
            model: Arc::new(Service(self.service.clone())),
            files: None,
            checkpoints: None,
            locks: place.path().to_path_buf(),
            runtime: place.path().to_path_buf(),
            ..base
        };
        let config = work::config(&settings, &self.service, model, false)?;
        let config = Config {
            profile: "default".into(),
            mode: if config.mode == Mode::Read { Mode::Read } else { Mode::Edits },
            max_steps: 1,
            verify: Vec::new(),
            checkpoints: false,
            ..config
        };
        Ok(Once { world, workspace: folder, config, holds: Box::new(place) })
    }
}

/// What the person's rules changed since a session was given them: what was denied meanwhile is denied, what was taken back is
/// taken back. What a client forbade stays forbidden.
fn rules_since(config: &Config) -> anyhow::Result<Option<ConfigPatch>> {
    let rules = crate::rules::load()?;
    let mut deny = config.deny.clone();
    deny.extend(rules.deny.into_iter().filter(|rule| !config.deny.contains(rule)));
    let patch = ConfigPatch {
        deny: (deny != config.deny).then_some(deny),
        allow: (rules.allow != config.allow).then_some(rules.allow),
        ..ConfigPatch::default()
    };
    Ok((patch != ConfigPatch::default()).then_some(patch))
}

/// Speaks for the stateless service: its own four tools, its own prompt.
fn service(settings: &Settings) -> anyhow::Result<Speaker> {
    work::speaker_with(settings, service_offers, Prompts::for_service)
}

impl Host for Serving {
    fn begin<'a>(
        &'a self,
        workspace: Option<&'a str>,
        set: &'a ConfigPatch,
    ) -> Wait<'a, Result<(String, Config), Refusal>> {
        Box::pin(self.new_session(workspace, set))
    }

    fn fits(&self, state: &State) -> Result<Option<ConfigPatch>, Refusal> {
        let folder = state.workspace.clone().unwrap_or_default();
        if !Path::new(folder.as_ref()).is_dir() {
            let why = format!("the folder of this session, {folder}, is not there any more. Put it back to go on");
            return Err(Refusal::Conflict(why));
        }
        let fits = || {
            let work = self.work(Path::new(folder.as_ref()))?;
            let patch = rules_since(&state.config)?;
            let config = patch.as_ref().map_or_else(|| state.config.as_ref().clone(), |patch| state.config.with(patch));
            self.keepable(&work, &config)?;
            anyhow::Ok(patch)
        };
        fits().map_err(conflict)
    }

    fn folder(&self, given: Option<&str>) -> Result<String, Refusal> {
        self.place(given).map(|folder| folder.to_string_lossy().into_owned())
    }

    fn start<'a>(&'a self, workspace: Option<&'a str>) -> Wait<'a, Result<Start, Refusal>> {
        Box::pin(self.look_around(workspace))
    }

    fn models(&self) -> Wait<'_, Vec<String>> {
        Box::pin(async { found::models(&self.base.speaker).await })
    }

    fn price(&self, workspace: &str, model: &str) -> Result<Option<Price>, Refusal> {
        let folder = Path::new(workspace);
        let work = self.work(folder).map_err(conflict)?;
        work.speaker.knows(model).map_err(Refusal::Conflict)?;
        let known = self.of(folder).map_err(conflict)?.price(model);
        Ok(known.or_else(|| work.speaker.price(model)))
    }

    fn day_budget(&self) -> Option<u64> {
        self.base.world.day_budget
    }

    fn is_picture(&self, bytes: &[u8]) -> bool {
        dunnock_model::picture_kind(bytes).is_some()
    }

    fn undo<'a>(&'a self, session: &'a SessionId) -> Wait<'a, Result<WayBack, Refusal>> {
        Box::pin(async move {
            let at = self.at(session).await.map_err(conflict)?;
            let (to, scope, told) = back::undo_way(&at).await.map_err(conflict)?;
            Ok(WayBack { to, scope, told })
        })
    }

    fn rules(&self) -> Result<Vec<(Rule, String, bool)>, Refusal> {
        let rules = crate::rules::load().map_err(conflict)?;
        let all = |list: Vec<Rule>, allows| list.into_iter().map(move |rule| (rule.clone(), rule.words(), allows));
        Ok(all(rules.allow, true).chain(all(rules.deny, false)).collect())
    }

    fn rule(&self, rule: &Rule, allows: bool, holds: bool) -> Result<(), Refusal> {
        match (allows, holds) {
            (true, true) => crate::rules::allow(rule).map_err(conflict),
            (_, false) => crate::rules::revoke(rule, allows).map_err(conflict),
            (false, true) => Err(Refusal::Conflict("a denial is made with: dunnock rules deny".into())),
        }
    }

    fn files(&self, workspace: &str) -> Vec<String> {
        found::files(Path::new(workspace))
    }

    fn points<'a>(&'a self, session: &'a SessionId) -> Wait<'a, Result<Vec<Point>, Refusal>> {
        Box::pin(async move {
            let at = self.at(session).await.map_err(conflict)?;
            let point = |p: dunnock_tui::Point| Point {
                step: p.step,
                seq: p.seq,
                title: p.title,
                files: p.files,
                kept: p.kept,
            };
            Ok(back::points(&at).await.into_iter().map(point).collect())
        })
    }

    fn diff<'a>(&'a self, session: &'a SessionId, steps: Option<&'a str>) -> Wait<'a, Result<Changes, Refusal>> {
        Box::pin(async move {
            let at = self.at(session).await.map_err(conflict)?;
            let (from, to, changes) = back::differences(&at, steps).await.map_err(conflict)?;
            let change = |change: &dunnock_tools::Differs| Change {
                path: say::one_line(&change.path),
                how: change.how.into(),
                diff: back::text(change, false),
            };
            Ok(Changes { from, to, changes: changes.iter().map(change).collect() })
        })
    }

    fn redacted(&self, text: &str) -> String {
        dunnock_tools::redacted(text).to_string()
    }

    fn once(&self) -> Wait<'_, Result<Once, Refusal>> {
        Box::pin(async move { self.one_call().map_err(conflict) })
    }
}

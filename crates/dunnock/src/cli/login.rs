//! `dunnock login`: chooses a provider and a model, tries them, and saves both. `dunnock logout`
//! removes saved keys.
//!
//! At a terminal it asks. Otherwise the key is read from standard input, so that scripts can use it.

use crate::config::{load, paths, saved_keys};
use crate::host::environment;
use crate::login::{self, Choice, KeyState, Login, NO_SIGN_IN};
use crate::signals::Signals;
use crate::view::exit::usage;
use crate::view::output;
use dunnock_model::{Provider, TryError};
use secrecy::SecretString;
use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The most models that are listed at once.
const LISTED: usize = 20;
/// The most bytes that are read as a key.
const MOST: u64 = 64 << 10;

/// The user stopped it: Ctrl-C, or the end of the input.
#[derive(Debug)]
struct Stopped;

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped; nothing was saved")
    }
}
impl std::error::Error for Stopped {}

/// `dunnock login`.
pub(crate) async fn run(
    data: Option<PathBuf>,
    provider: Option<String>,
    model: Option<String>,
) -> anyhow::Result<ExitCode> {
    let login = Login::new(load::given(data, Vec::new()))?;
    let model = model.map(|model| match (&provider, model.split_once('/')) {
        (Some(name), Some((first, rest))) if first == name => rest.to_owned(),
        _ => model,
    });
    if !std::io::stdin().is_terminal() {
        return without_terminal(&login, provider, model).await;
    }
    let asked = Terminal { signals: Signals::new()? }.login(&login, provider, model).await;
    match asked {
        Err(error) if error.is::<Stopped>() => {
            output::aside(&format!("\n{error}"));
            Ok(ExitCode::from(130))
        }
        other => other.map(|()| ExitCode::SUCCESS),
    }
}

/// The key comes from standard input; nothing is asked.
async fn without_terminal(
    login: &Login,
    provider: Option<String>,
    model: Option<String>,
) -> anyhow::Result<ExitCode> {
    let name = provider.ok_or_else(|| {
        usage(
            "without a terminal, name the provider and pipe in the key: dunnock login openai < FILE",
        )
    })?;
    let mut provider = login.provider(&name).map_err(usage)?;
    let mut text = String::new();
    std::io::stdin().lock().take(MOST).read_to_string(&mut text)?;
    if !text.trim().is_empty() {
        let key = saved_keys::checked(&text).map_err(usage)?;
        if let KeyState::Variable(env) = login::key_state(&provider) {
            output::note(&format!("{env} is set, and it is used instead of a saved key"));
        }
        provider = Login::with_key(provider, &key);
    } else if login::key_state(&provider) == KeyState::Missing {
        return Err(usage(format!(
            "{name} needs a key, and there was none in standard input. Send it there: dunnock \
             login {name} < FILE"
        )));
    }
    let failed = |error: TryError| anyhow::anyhow!("{}. Nothing was saved", error.words);
    let models = login.models(&provider).await.map_err(failed)?;
    let Some(model) = model.or_else(|| login::suggested(&name, &models)) else {
        if let Some(file) = login.save_key(&provider)? {
            output::aside(&format!("saved the key in {}", shown(&file)));
        }
        output::aside(&format!(
            "no model was chosen. Choose one of {}: dunnock login {name} --model MODEL",
            dunnock_proto::count(models.len(), "model")
        ));
        models.iter().for_each(|model| output::line(&output::one_line(model)));
        return Ok(ExitCode::SUCCESS);
    };
    login.try_model(&provider, &model).await.map_err(failed)?;
    finish(login, &provider, &model)?;
    Ok(ExitCode::SUCCESS)
}

fn shown(path: &Path) -> String {
    environment::folder(path)
}

fn finish(login: &Login, provider: &Provider, model: &str) -> anyhow::Result<()> {
    let saved = login.save(provider, model)?;
    if let Some(file) = &saved.key {
        output::aside(&format!(
            "saved the key in {}; it is sent only to {}",
            shown(file),
            provider.address()
        ));
    }
    output::aside(&format!(
        "{}/{model} answers, and is now the model of new sessions ({})",
        provider.name,
        shown(&saved.model)
    ));
    Ok(())
}

/// Questions at the terminal.
struct Terminal {
    signals: Signals,
}

impl Terminal {
    async fn login(
        &mut self,
        login: &Login,
        provider: Option<String>,
        model: Option<String>,
    ) -> anyhow::Result<()> {
        output::aside(NO_SIGN_IN);
        let name = match provider {
            Some(name) => name,
            None => self.choose_provider(&login.choices().await?).await?,
        };
        let plain = login.provider(&name).map_err(usage)?;
        let mut asks = false;
        loop {
            let provider = match login::key_state(&plain) {
                KeyState::Variable(env) if !asks => {
                    output::aside(&format!("using the key in {env}"));
                    plain.clone()
                }
                KeyState::NotNeeded if !asks => plain.clone(),
                state => self.ask_key(&plain, &state).await?,
            };
            match self.choose_model(login, &provider, model.clone()).await? {
                Ok(model) => return finish(login, &provider, &model),
                // Not every server checks the key when it lists its models.
                Err(refused) => {
                    // A saved key would not be used while the variable is set.
                    if matches!(login::key_state(&plain), KeyState::Variable(_)) {
                        anyhow::bail!(refused.words);
                    }
                    output::note(&refused.words);
                    asks = true;
                }
            }
        }
    }

    async fn choose_provider(&mut self, choices: &[Choice]) -> anyhow::Result<String> {
        for (n, choice) in choices.iter().enumerate() {
            output::aside(&format!("{:>4}  {:<12} {}", n + 1, choice.name, choice.about));
        }
        loop {
            let typed = self.line(&format!("Provider (1 to {}): ", choices.len()), true).await?;
            let number = typed.parse::<usize>().ok().and_then(|n| choices.get(n.checked_sub(1)?));
            let named = choices.iter().find(|choice| choice.name == typed);
            match number.or(named) {
                Some(choice) => return Ok(choice.name.clone()),
                None => output::aside("type one of the numbers above, or a name"),
            }
        }
    }

    async fn ask_key(&mut self, plain: &Provider, state: &KeyState) -> anyhow::Result<Provider> {
        if let Some(warning) = login::unencrypted(plain) {
            output::note(&warning);
        }
        let keep = if *state == KeyState::Saved { "; enter keeps the saved one" } else { "" };
        let (name, address) = (&plain.name, plain.address());
        loop {
            let prompt = format!("Key of {name} for {address} (not shown{keep}): ");
            let typed = SecretString::from(self.line(&prompt, false).await?);
            let typed = secrecy::ExposeSecret::expose_secret(&typed);
            if typed.is_empty() && *state == KeyState::Saved {
                return Ok(plain.clone());
            }
            match saved_keys::checked(typed) {
                Ok(key) => return Ok(Login::with_key(plain.clone(), &key)),
                Err(why) => output::aside(&why),
            }
        }
    }

    /// A model that has answered; the inner error says that the key was refused.
    async fn choose_model(
        &mut self,
        login: &Login,
        provider: &Provider,
        given: Option<String>,
    ) -> anyhow::Result<Result<String, TryError>> {
        output::aside(&format!("asking {} for its models", provider.address()));
        let models = match self.unless_stopped(login.models(provider)).await? {
            Ok(models) => models,
            Err(error) if error.needs_key => return Ok(Err(error)),
            Err(error) => anyhow::bail!("{}. Nothing was saved", error.words),
        };
        let mut given = given;
        loop {
            let model = match given.take() {
                Some(model) => model,
                None => self.pick_model(&provider.name, &models).await?,
            };
            output::aside(&format!(
                "trying {}/{} with one short request",
                provider.name,
                output::one_line(&model)
            ));
            match self.unless_stopped(login.try_model(provider, &model)).await? {
                Ok(()) => return Ok(Ok(model)),
                Err(error) if error.needs_key => return Ok(Err(error)),
                Err(error) => output::note(&error.words),
            }
        }
    }

    async fn pick_model(&mut self, provider: &str, models: &[String]) -> anyhow::Result<String> {
        let suggested = login::suggested(provider, models);
        let mut fits: Vec<&String> = models.iter().collect();
        loop {
            for (n, model) in fits.iter().take(LISTED).enumerate() {
                output::aside(&format!("{:>4}  {}", n + 1, output::one_line(model)));
            }
            if fits.len() > LISTED {
                output::aside(&format!("      and {} more", fits.len() - LISTED));
            }
            let default = suggested
                .as_ref()
                .map_or_else(String::new, |model| format!(", enter: {}", output::one_line(model)));
            let prompt = format!("Model (a number, or part of a name{default}): ");
            let typed = self.line(&prompt, true).await?;
            let number = typed.parse::<usize>().ok().and_then(|n| fits.get(n.checked_sub(1)?));
            if let Some(model) = number.filter(|_| number_is_listed(&typed)) {
                return Ok((*model).clone());
            }
            if let (true, Some(model)) = (typed.is_empty(), &suggested) {
                return Ok(model.clone());
            }
            if let Some(model) = models.iter().find(|model| **model == typed) {
                return Ok(model.clone());
            }
            let low = typed.to_lowercase();
            fits = models.iter().filter(|model| model.to_lowercase().contains(&low)).collect();
            match fits.as_slice() {
                [] => {
                    output::aside("no model has that in its name");
                    fits = models.iter().collect();
                }
                [only] if !typed.is_empty() => return Ok((*only).clone()),
                _ => {}
            }
        }
    }

    async fn unless_stopped<T>(&mut self, what: impl Future<Output = T>) -> anyhow::Result<T> {
        tokio::select! {
            done = what => Ok(done),
            () = self.signals.next() => Err(Stopped.into()),
        }
    }

    /// Reads a line; without echo for a key.
    async fn line(&mut self, prompt: &str, echo: bool) -> anyhow::Result<String> {
        let hidden = if echo { None } else { Some(Hidden::new()?) };
        let _ = write!(std::io::stderr(), "{prompt}");
        let _ = std::io::stderr().flush();
        let read = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line).map(|count| (count > 0).then_some(line))
        });
        let line = self.unless_stopped(read).await;
        if hidden.is_some() {
            let _ = writeln!(std::io::stderr()); // the enter of the user was not echoed
        }
        drop(hidden);
        let line = line???.ok_or(Stopped)?;
        Ok(line.trim().to_owned())
    }
}

/// Whether a number is one of those in the list.
fn number_is_listed(typed: &str) -> bool {
    typed.parse::<usize>().is_ok_and(|number| (1..=LISTED).contains(&number))
}

/// While it exists, the terminal does not show what is typed.
struct Hidden {
    #[cfg(unix)]
    before: rustix::termios::Termios,
}

impl Hidden {
    fn new() -> anyhow::Result<Self> {
        #[cfg(unix)]
        {
            use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex};
            let stdin = std::io::stdin();
            let before = rustix::termios::tcgetattr(&stdin)?;
            let mut hidden = before.clone();
            hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
            // A shell that takes over in between would show what is typed.
            hidden.special_codes[SpecialCodeIndex::VSUSP] = 0;
            rustix::termios::tcsetattr(&stdin, OptionalActions::Flush, &hidden)?;
            Ok(Self { before })
        }
        #[cfg(not(unix))]
        anyhow::bail!(
            "a key cannot be typed here without being shown. Send it to standard input: dunnock \
             login PROVIDER < FILE"
        )
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        #[cfg(unix)]
        {
            let (stdin, now) = (std::io::stdin(), rustix::termios::OptionalActions::Flush);
            let _ = rustix::termios::tcsetattr(&stdin, now, &self.before);
        }
    }
}

/// `dunnock logout`.
pub(crate) fn logout(data: Option<PathBuf>, provider: Option<String>) -> anyhow::Result<ExitCode> {
    let login = Login::new(load::given(data, Vec::new()))?;
    let name = match (provider, login.saved().as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => (*only).to_owned(),
        (None, []) => {
            output::aside("no key is saved");
            return Ok(ExitCode::SUCCESS);
        }
        (None, several) => {
            return Err(usage(format!(
                "keys are saved for {}. Say which to remove, for example: dunnock logout {}",
                several.join(", "),
                several.first().copied().unwrap_or_default()
            )));
        }
    };
    match saved_keys::remove(&name)? {
        0 => return Err(usage(format!("no key of {name} is saved"))),
        _ => output::aside(&format!(
            "removed the saved key of {name}. The key itself still works; to revoke it, delete it on \
             the provider's website"
        )),
    }
    if let Ok(provider) = login.provider(&name)
        && let Some(env) = provider.key_env.filter(|env| paths::text_var(env).is_some())
    {
        output::note(&format!("{env} is still set"));
    }
    Ok(ExitCode::SUCCESS)
}

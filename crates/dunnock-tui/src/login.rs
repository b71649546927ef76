//! Setting up a model, step by step: provider, key, model.
//!
//! Invariant: the key is on no screen, in no history and in no draft. Invariant: what was left is
//! over: an answer to an earlier attempt changes nothing, and only an answer to the current one
//! leads to a request to save.

use crate::host::{LoginEvent, LoginFault, LoginKey, LoginProvider, LoginRequest, TypedKey};
use crate::pick::{Pick, Picked, Row, Value};
use crate::text::{Line, Span, Style, Tone};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What to know before a key is asked for.
const NO_SIGN_IN: &str = "Dunnock works with API keys and with local servers. There is no sign-in \
                          with a subscription.";
/// The most dots that stand for a key.
const DOTS: usize = 40;
/// The longest text that is taken as a key, in bytes.
const LONGEST: usize = 16 << 10;

/// The step on the screen.
#[derive(Debug, Clone)]
enum Step {
    FindProviders,
    Provider(Pick),
    Key,
    FindModels,
    Model(Pick),
    Try { model: String },
    Save { model: String },
}

/// What a report leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoginOutcome {
    Nothing,
    /// Send this request.
    Ask(LoginRequest),
    /// It cannot be done, for this reason.
    Wrong(String),
}

/// Sets up a model, while it is open.
#[derive(Clone, Default)]
pub struct Login {
    /// The number of the last attempt. A higher one makes answers to earlier requests void.
    attempt: u64,
    step: Option<Step>,
    providers: Vec<LoginProvider>,
    /// The chosen provider.
    chosen: usize,
    /// The key as it is typed.
    key: String,
    models: Vec<String>,
    /// Why the last step did not work.
    fault: String,
}

impl Login {
    /// Whether it is on the screen.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.step.is_some()
    }

    /// Begins with the list of providers.
    pub(crate) fn open(&mut self) -> LoginRequest {
        *self =
            Self { attempt: self.attempt + 1, step: Some(Step::FindProviders), ..Self::default() };
        LoginRequest::Providers { attempt: self.attempt }
    }

    /// Ends it, whatever is under way.
    pub(crate) fn leave(&mut self) -> LoginRequest {
        *self = Self { attempt: self.attempt + 1, ..Self::default() };
        LoginRequest::Stop
    }

    fn provider(&self) -> Option<&LoginProvider> {
        self.providers.get(self.chosen)
    }

    fn name(&self) -> String {
        self.provider().map(|provider| provider.name.clone()).unwrap_or_default()
    }

    /// The key, if one was typed.
    fn typed(&self) -> Option<TypedKey> {
        (!self.key.is_empty()).then(|| self.key.clone().into())
    }

    fn choose_provider(&mut self) {
        let row = |(n, provider): (usize, &LoginProvider)| Row {
            label: format!("{:<12} {}", provider.name, provider.about),
            detail: String::new(),
            below: vec![provider.address.clone()],
            value: Value::Choice(n),
        };
        let rows = self.providers.iter().enumerate().map(row).collect();
        self.key.clear();
        self.step = Some(Step::Provider(Pick::new("Which provider?", rows)));
    }

    fn choose_model(&mut self) {
        let row = |(n, model): (usize, &String)| Row {
            label: model.clone(),
            detail: String::new(),
            below: Vec::new(),
            value: Value::Choice(n),
        };
        let rows = self.models.iter().enumerate().map(row).collect();
        self.step = Some(Step::Model(Pick::new("Which model?", rows)));
    }

    /// Text was pasted: a key, or the filter of a list.
    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.step {
            Some(Step::Key) => self.type_in(text.trim()),
            Some(Step::Provider(pick) | Step::Model(pick)) => {
                let shown = text.chars().filter(|c| !c.is_control());
                shown.for_each(|c| drop(pick.key(KeyCode::Char(c))));
            }
            Some(Step::FindProviders | Step::FindModels | Step::Try { .. } | Step::Save { .. })
            | None => {}
        }
    }

    fn type_in(&mut self, text: &str) {
        self.fault.clear();
        if self.key.len() + text.len() <= LONGEST {
            self.key.push_str(text);
        }
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<LoginRequest> {
        if key.code == KeyCode::Esc {
            return self.back();
        }
        let held = key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match (&mut self.step, key.code) {
            (Some(Step::Key), KeyCode::Enter) => return self.send_key(),
            (Some(Step::Key), KeyCode::Backspace) => drop(self.key.pop()),
            (Some(Step::Key), KeyCode::Char('u')) if held => self.key.clear(),
            (Some(Step::Key), KeyCode::Char(c)) if !held => {
                self.type_in(c.encode_utf8(&mut [0; 4]))
            }
            (Some(Step::Provider(pick)), code) if !held => {
                if let Picked::Took(Value::Choice(n)) = pick.key(code) {
                    self.chosen = n;
                    self.fault.clear();
                    let key = self.provider().map(|provider| &provider.key);
                    if matches!(key, Some(LoginKey::Variable(_) | LoginKey::NotNeeded)) {
                        return Some(self.find_models());
                    }
                    self.step = Some(Step::Key);
                }
            }
            (Some(Step::Model(pick)), code) if !held => {
                if let Picked::Took(Value::Choice(n)) = pick.key(code) {
                    let model = self.models.get(n).cloned().unwrap_or_default();
                    return Some(self.try_model(model));
                }
            }
            _ => {}
        }
        None
    }

    /// One step back; from the first one, the end.
    fn back(&mut self) -> Option<LoginRequest> {
        self.fault.clear();
        match &self.step {
            Some(Step::FindProviders | Step::Provider(_)) | None => return Some(self.leave()),
            Some(Step::Save { .. }) => return None, // it is a matter of milliseconds
            Some(Step::Try { .. }) => self.choose_model(),
            Some(Step::FindModels | Step::Model(_)) if !self.key.is_empty() => {
                self.step = Some(Step::Key)
            }
            Some(Step::Key | Step::FindModels | Step::Model(_)) => self.choose_provider(),
        }
        self.attempt += 1;
        Some(LoginRequest::Stop)
    }

    fn send_key(&mut self) -> Option<LoginRequest> {
        let saved = self.provider().is_some_and(|provider| provider.key == LoginKey::Saved);
        if self.key.is_empty() && !saved {
            self.fault = "paste the key first".into();
            return None;
        }
        Some(self.find_models())
    }

    fn find_models(&mut self) -> LoginRequest {
        self.attempt += 1;
        self.fault.clear();
        self.step = Some(Step::FindModels);
        let (attempt, provider, key) = (self.attempt, self.name(), self.typed());
        LoginRequest::Models { attempt, provider, key }
    }

    fn try_model(&mut self, model: String) -> LoginRequest {
        self.attempt += 1;
        self.fault.clear();
        self.step = Some(Step::Try { model: model.clone() });
        let (attempt, provider, key) = (self.attempt, self.name(), self.typed());
        LoginRequest::Try { attempt, provider, key, model }
    }

    /// Handles a report of the host. One that belongs to an earlier attempt changes nothing.
    pub(crate) fn on_event(&mut self, event: LoginEvent) -> LoginOutcome {
        let (attempt, open) = (self.attempt, self.is_open());
        match event {
            LoginEvent::Needed if !open => return LoginOutcome::Ask(self.open()),
            LoginEvent::Providers { attempt: of, providers } if open && of == attempt => {
                match providers {
                    Ok(providers) => {
                        self.providers = providers;
                        self.choose_provider();
                    }
                    Err(why) => {
                        self.leave();
                        return LoginOutcome::Wrong(why);
                    }
                }
            }
            LoginEvent::Models { attempt: of, models } if open && of == attempt => match models {
                Ok(models) => {
                    self.models = models;
                    self.choose_model();
                }
                Err(fault) => self.failed(fault),
            },
            LoginEvent::Tried { attempt: of, result } if open && of == attempt => match result {
                Ok(()) => return self.save(),
                Err(fault) if fault.needs_key => self.failed(fault),
                Err(fault) => {
                    self.fault = fault.words;
                    self.choose_model();
                }
            },
            LoginEvent::Saved { attempt: of, result } if open && of == attempt => match result {
                Ok(()) => drop(self.leave()),
                Err(why) => {
                    self.fault = why;
                    self.choose_model();
                }
            },
            LoginEvent::Needed
            | LoginEvent::Providers { .. }
            | LoginEvent::Models { .. }
            | LoginEvent::Tried { .. }
            | LoginEvent::Saved { .. } => {}
        }
        LoginOutcome::Nothing
    }

    fn save(&mut self) -> LoginOutcome {
        let Some(Step::Try { model }) = &self.step else { return LoginOutcome::Nothing };
        let model = model.clone();
        self.step = Some(Step::Save { model: model.clone() });
        let (attempt, provider, key) = (self.attempt, self.name(), self.typed());
        LoginOutcome::Ask(LoginRequest::Save { attempt, provider, key, model })
    }

    /// Back to the step that can be done differently: another key, or another provider.
    fn failed(&mut self, fault: LoginFault) {
        self.fault = fault.words;
        let variable =
            self.provider().is_some_and(|provider| matches!(provider.key, LoginKey::Variable(_)));
        // A variable is used in place of a saved key, so another key would not help.
        if fault.needs_key && !variable {
            self.key.clear();
            self.step = Some(Step::Key);
        } else {
            self.choose_provider();
        }
    }

    /// The step as lines, at most so many, and the cursor.
    pub(crate) fn view(&self, columns: usize, most: usize) -> (Vec<Line>, Option<(usize, usize)>) {
        let Some(step) = &self.step else { return (Vec::new(), None) };
        let number = match step {
            Step::FindProviders | Step::Provider(_) => 1,
            Step::Key => 2,
            Step::FindModels | Step::Model(_) | Step::Try { .. } | Step::Save { .. } => 3,
        };
        let head = Line::of(" Set up a model", Style::of(Tone::Accent).bold())
            .beside(Line::of(&format!("step {number} of 3 "), Tone::Quiet), columns);
        let mut lines = vec![head];
        let text = |text: &str, tone: Tone| Line::of(text, tone).wrap(columns, " ", " ");
        if number == 1 {
            lines.extend(text(NO_SIGN_IN, Tone::Quiet));
        }
        if !self.fault.is_empty() {
            lines.extend(text(&self.fault, Tone::Bad));
        }
        let (name, address) = self
            .provider()
            .map_or(("", ""), |provider| (provider.name.as_str(), provider.address.as_str()));
        let mut cursor = None;
        match step {
            Step::FindProviders => lines.extend(text("looking for local servers …", Tone::Quiet)),
            Step::Provider(pick) | Step::Model(pick) => {
                let keys = match number {
                    1 => " enter: pick   type: filter   esc: close",
                    _ => " enter: pick   type: filter   esc: back",
                };
                lines.extend(pick.lines_with(columns, most.saturating_sub(lines.len()), keys));
            }
            Step::Key => {
                lines.extend(text(&format!("Paste the API key of {name}."), Tone::Text));
                let about = format!(
                    "It is sent only to {address} and saved in a file that only you can read. The \
                     model's tools and sandboxed commands cannot read it."
                );
                lines.extend(text(&about, Tone::Quiet));
                let warning = self.provider().and_then(|provider| provider.warning.as_deref());
                lines.extend(warning.into_iter().flat_map(|warning| text(warning, Tone::Warn)));
                let dots = self.key.chars().count().min(DOTS).min(columns / 2);
                cursor = Some((lines.len(), 6 + dots));
                let mut line = Line::of(" key  ", Style::of(Tone::Accent).bold());
                line.0.push(Span::new(&"•".repeat(dots), Tone::Text));
                lines.push(line);
                lines.push(Line::of(self.key_help(), Tone::Quiet).cut(columns));
            }
            Step::FindModels => {
                lines.extend(text(&format!("asking {address} for its models …"), Tone::Quiet));
                lines.push(Line::of(" esc: back", Tone::Quiet));
            }
            Step::Try { model } => {
                let trying = format!("trying {name}/{model} with one short request …");
                lines.extend(text(&trying, Tone::Quiet));
                lines.push(Line::of(" esc: back", Tone::Quiet));
            }
            Step::Save { model } => {
                lines.extend(text(&format!("saving {name}/{model}"), Tone::Quiet))
            }
        }
        lines.truncate(most.max(3));
        (lines, cursor.filter(|(row, _)| *row < most.max(3)))
    }

    fn key_help(&self) -> &'static str {
        let saved = self.provider().is_some_and(|provider| provider.key == LoginKey::Saved);
        match saved && self.key.is_empty() {
            true => " enter: keep the saved key   esc: back",
            false => " enter: check the key   ctrl-u: clear   esc: back",
        }
    }
}

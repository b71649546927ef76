//! Keys that `dunnock login` saved: `keys/keys.toml` next to the user's settings.
//!
//! Invariant: a saved key goes only to the address for which it was saved, whatever a project, the
//! environment or a flag sets as the address of its provider.
//! Invariant: only this user can read the folder and the file, and neither is a link.

use crate::config::paths;
use crate::config::settings::Settings;
use anyhow::{Context as _, bail};
use dunnock_model::Provider;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// The most bytes of the file.
const MOST: u64 = 1 << 20;
/// The longest key, in bytes.
const LONGEST: usize = 4_096;

/// All saved keys.
#[derive(Debug, Default, Clone)]
pub(crate) struct SavedKeys(Vec<SavedKey>);

#[derive(Debug, Clone)]
struct SavedKey {
    provider: String,
    base_url: String,
    key: SecretString,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    #[serde(default)]
    key: Vec<KeyEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    provider: String,
    base_url: String,
    key: String,
}

/// The folder of the keys, which no tool and no command can access.
pub(crate) fn folder() -> anyhow::Result<PathBuf> {
    Ok(paths::config_dir()?.join("keys"))
}

/// Whether two addresses are the same one. Anything but a trailing slash makes them different.
fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// The key as it was typed or pasted, without the blanks around it.
///
/// # Errors
/// If it cannot be a key, so that it is sent nowhere.
pub(crate) fn checked(text: &str) -> Result<SecretString, String> {
    let key = text.trim();
    if key.is_empty() {
        return Err("the key is empty. Paste the key".into());
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("this is not a key: it contains blanks or control characters. Copy only the \
                    key"
        .into());
    }
    if key.len() > LONGEST {
        return Err(format!("this is not a key: it is longer than {LONGEST} characters"));
    }
    Ok(SecretString::from(key))
}

impl SavedKeys {
    /// The key that may be sent to this provider at this address.
    pub(crate) fn key(&self, provider: &str, base_url: &str) -> Option<&SecretString> {
        let fits =
            |saved: &&SavedKey| saved.provider == provider && is_same(&saved.base_url, base_url);
        self.0.iter().find(fits).map(|saved| &saved.key)
    }

    /// The addresses for which keys of this provider are saved.
    pub(crate) fn addresses(&self, provider: &str) -> Vec<&str> {
        let of = |saved: &&SavedKey| saved.provider == provider;
        self.0.iter().filter(of).map(|saved| saved.base_url.as_str()).collect()
    }

    /// The providers with a saved key, each once.
    pub(crate) fn providers(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|saved| saved.provider.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn text(&self) -> anyhow::Result<String> {
        let mut text = String::from(
            "# API keys, saved by \"dunnock login\". Each is sent only to its base_url. \"dunnock \
             logout\" removes them.\n",
        );
        for saved in &self.0 {
            let quoted = |text: &str| serde_json::to_string(text);
            text.push_str(&format!(
                "\n[[key]]\nprovider = {}\nbase_url = {}\nkey = {}\n",
                quoted(&saved.provider)?,
                quoted(&saved.base_url)?,
                quoted(saved.key.expose_secret())?
            ));
        }
        Ok(text)
    }
}

/// Reads the keys of this user.
///
/// # Errors
/// If the folder or the file is a link, belongs to another user, or cannot be read.
pub(crate) fn load() -> anyhow::Result<SavedKeys> {
    match folder() {
        Ok(folder) => load_from(&folder),
        Err(_) => Ok(SavedKeys::default()), // there is no home folder
    }
}

fn load_from(folder: &Path) -> anyhow::Result<SavedKeys> {
    if !is_own(folder, Expected::Folder)? {
        return Ok(SavedKeys::default());
    }
    let path = folder.join("keys.toml");
    if !is_own(&path, Expected::File)? {
        return Ok(SavedKeys::default());
    }
    let mut text = String::new();
    let file = open(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    file.take(MOST)
        .read_to_string(&mut text)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    // The parser's own message would show the line, and with it the key.
    let Ok(file) = toml::from_str::<KeyFile>(&text) else {
        bail!(
            "{} is damaged, so no saved key is used. Remove it, and save the keys again: dunnock \
             login",
            path.display()
        );
    };
    let saved = |entry: KeyEntry| {
        let KeyEntry { provider, base_url, key } = entry;
        Some(SavedKey { provider, base_url, key: checked(&key).ok()? })
    };
    Ok(SavedKeys(file.key.into_iter().filter_map(saved).collect()))
}

/// Opens a file for reading, but no link.
fn open(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::File::options();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    options.open(path)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Folder,
    File,
}

/// Whether it exists. If others could read it, only this user can from now on.
///
/// # Errors
/// If it is a link or something else, or belongs to another user.
fn is_own(path: &Path, kind: Expected) -> anyhow::Result<bool> {
    let shown = path.display();
    let about = match path.symlink_metadata() {
        Ok(about) => about,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error).with_context(|| format!("{shown} cannot be read")),
    };
    let again = "Remove it, and save the keys again: dunnock login";
    if about.is_symlink() {
        bail!("{shown} is a link, so no saved key is used. {again}");
    }
    let fits = match kind {
        Expected::Folder => about.is_dir(),
        Expected::File => about.is_file(),
    };
    if !fits {
        let what = if kind == Expected::Folder { "a folder" } else { "a plain file" };
        bail!("{shown} is not {what}, so no saved key is used. {again}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        if about.uid() != rustix::process::geteuid().as_raw() {
            bail!("{shown} belongs to another user, so no saved key is used. {again}");
        }
        if about.mode() & 0o077 != 0 {
            let mode = if kind == Expected::Folder { 0o700 } else { 0o600 };
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
                .with_context(|| format!("{shown} cannot be made private"))?;
        }
    }
    Ok(true)
}

/// Changes the saved keys; no other process changes them meanwhile.
fn change<T>(change: impl FnOnce(&mut Vec<SavedKey>) -> T) -> anyhow::Result<T> {
    let folder = folder()?;
    if !is_own(&folder, Expected::Folder)? {
        dunnock_private::create_folder(&folder)
            .with_context(|| format!("{} cannot be created", folder.display()))?;
        is_own(&folder, Expected::Folder)?;
    }
    let lock = dunnock_private::open_append(&folder.join("lock"))
        .with_context(|| format!("{} cannot be written", folder.display()))?;
    lock.lock()?;
    let mut saved = load_from(&folder)?;
    let result = change(&mut saved.0);
    let path = folder.join("keys.toml");
    dunnock_private::replace(&path, saved.text()?.as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(result)
}

/// Saves a key for a provider at one address, in place of an earlier one for the same address.
pub(crate) fn save(provider: &Provider, key: &SecretString) -> anyhow::Result<()> {
    let (name, base_url) = (provider.name.clone(), provider.base_url.clone());
    change(|saved| {
        saved.retain(|known| known.provider != name || !is_same(&known.base_url, &base_url));
        saved.push(SavedKey { provider: name, base_url, key: key.clone() });
    })
}

/// Removes all keys of a provider. Returns how many there were.
pub(crate) fn remove(provider: &str) -> anyhow::Result<usize> {
    if load()?.addresses(provider).is_empty() {
        return Ok(0);
    }
    change(|saved| {
        let before = saved.len();
        saved.retain(|known| known.provider != provider);
        before - saved.len()
    })
}

impl Settings {
    /// Uses the saved keys, and notes why if some cannot be used.
    pub(crate) fn use_saved_keys(&mut self, env: &dyn Fn(&str) -> Option<String>) {
        match load() {
            Ok(keys) => self.saved_keys = keys,
            Err(error) => self.notes.push(format!("{error:#}")),
        }
        let (providers, _) = self.providers(env);
        for provider in providers.iter().filter(|provider| provider.key.is_none()) {
            let (name, address) = (&provider.name, provider.address());
            if let Some(known) = self.saved_keys.addresses(name).first() {
                self.notes.push(format!(
                    "the saved key of {name} is for {known}, so it is not sent to {address}. To \
                     save a key for this address: dunnock login {name}"
                ));
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_key_is_refused() {
        assert_eq!(checked(" sk-1\n").unwrap().expose_secret(), "sk-1");
        for wrong in ["", " \n", "sk 1", "a\tb", "export K=1 ", "sk-\u{1b}[2J1", "ключ", "a\u{7f}"]
        {
            assert!(checked(wrong).is_err(), "{wrong:?}");
        }
        assert!(checked(&"k".repeat(LONGEST)).is_ok());
        assert!(checked(&"k".repeat(LONGEST + 1)).is_err());
    }

    #[test]
    fn a_key_is_for_one_provider_at_one_address() {
        let key = SecretString::from("sk-1");
        let saved = SavedKey { provider: "a".into(), base_url: "https://a/v1".into(), key };
        let saved = SavedKeys(vec![saved]);
        assert!(saved.key("a", "https://a/v1").is_some());
        assert!(saved.key("a", "https://a/v1/").is_some());
        for (provider, url) in [
            ("b", "https://a/v1"),
            ("a", "http://a/v1"),
            ("a", "https://a/v1/x"),
            ("a", "https://a:444/v1"),
            ("a", "https://a.evil/v1"),
            ("a", "https://a/v1?x"),
            ("a", "https://me@a/v1"),
            ("a", ""),
        ] {
            assert!(saved.key(provider, url).is_none(), "{provider} {url}");
        }
        assert!(!format!("{saved:?}").contains("sk-1"));
        let text = saved.text().unwrap();
        let file: KeyFile = toml::from_str(&text).unwrap();
        assert_eq!(file.key.first().unwrap().key, "sk-1");
    }
}

//! Changes the user's settings file, and leaves the rest of it as it is.

use crate::config::load;
use anyhow::Context as _;
use std::io::ErrorKind;
use std::path::PathBuf;
use toml::de::DeTable;

/// Sets the model of new sessions. Returns the file.
pub(crate) fn set_model(model: &str) -> anyhow::Result<PathBuf> {
    let path = load::user_file()?;
    // A link to a file elsewhere stays one.
    let real = path.canonicalize().unwrap_or_else(|_| path.clone());
    let text = match std::fs::read_to_string(&real) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", path.display()));
        }
    };
    let text = with_model(&text, model).with_context(|| {
        format!("{} cannot be changed; set model = \"{model}\" in it yourself", path.display())
    })?;
    if let Some(folder) = real.parent() {
        dunnock_private::create_folder(folder)
            .with_context(|| format!("{} cannot be created", folder.display()))?;
    }
    dunnock_private::replace(&real, text.as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

fn with_model(text: &str, model: &str) -> anyhow::Result<String> {
    let value = serde_json::to_string(model)?;
    let table = DeTable::parse(text).map_err(|error| anyhow::anyhow!("{}", error.message()))?;
    let known = table.get_ref().iter().find(|(name, _)| name.get_ref() == "model");
    let Some((_, old)) = known else { return Ok(format!("model = {value}\n{text}")) };
    let span = old.span();
    let (before, after) = (text.get(..span.start), text.get(span.end..));
    let (before, after) = before.zip(after).context("the setting was not found")?;
    Ok(format!("{before}{value}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_model_changes() {
        for (before, after) in [
            ("", "model = \"a/b\"\n"),
            ("model = \"x/y\" # mine\nmax_steps = 3\n", "model = \"a/b\" # mine\nmax_steps = 3\n"),
            (
                "# first\n[providers.x]\nwire = 'chat'\n",
                "model = \"a/b\"\n# first\n[providers.x]\nwire = 'chat'\n",
            ),
            ("max_steps = 3\nmodel='x/y'", "max_steps = 3\nmodel=\"a/b\""),
        ] {
            let text = with_model(before, "a/b").unwrap();
            assert_eq!(text, after);
            assert!(DeTable::parse(&text).is_ok(), "{text}");
        }
        assert!(with_model("model = ", "a/b").is_err());
    }
}

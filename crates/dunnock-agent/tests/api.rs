//! What is public, written down: a change of it is seen in review, and in the version.

use std::path::Path;

/// Every public item of a file with its form, without bodies and comments.
fn public(source: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut within = String::new();
    let mut lines = source.lines().peekable();
    let mut open: Option<usize> = None; // the indentation of a type whose fields or variants are public, too
    while let Some(line) = lines.next() {
        let (text, indent) = (line.trim(), line.len() - line.trim_start().len());
        if indent == 0
            && (text.starts_with("impl")
                || text.starts_with("pub enum")
                || text.starts_with("pub struct"))
        {
            within = text.trim_end_matches(" {").to_owned();
        }
        if open.is_some_and(|at| indent <= at && text == "}") {
            open = None;
            continue;
        }
        let shown = text.starts_with("pub ")
            || text.starts_with("#[non_exhaustive]")
            || text.starts_with("#[error");
        let variant =
            open.is_some() && !text.starts_with("//") && !text.starts_with('#') && !text.is_empty();
        let private = text.starts_with("pub(")
            || (variant && within.contains("struct") && !text.starts_with("pub "));
        if private || !(shown || variant) {
            continue;
        }
        let mut form = text.to_owned();
        while !shown_whole(&form)
            && let Some(more) = lines.next()
        {
            form = format!("{form} {}", more.trim());
        }
        let form = form.trim_end_matches(['{', ';', ',']).trim_end().to_owned();
        if text.starts_with("pub enum") || (text.starts_with("pub struct") && text.ends_with('{')) {
            open = Some(indent);
        }
        let place = if indent > 0 && open.is_none() {
            format!("{within} :: ")
        } else {
            "  ".repeat(indent / 4)
        };
        items.push(format!("{place}{form}"));
    }
    items
}

/// Whether a form is whole: its brackets are closed, or a body begins.
fn shown_whole(form: &str) -> bool {
    let count = |sign: char| form.chars().filter(|c| *c == sign).count();
    !form.starts_with("pub fn") && !form.starts_with("pub async fn")
        || (count('(') == count(')') && form.ends_with('{'))
}

#[test]
fn the_public_face_is_as_it_was_written_down() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::from(
        "The public face of dunnock-agent, made from its sources by a test (DUNNOCK_BLESS=1).\n",
    );
    for name in ["lib", "agent", "task", "event", "run"] {
        let source = std::fs::read_to_string(here.join(format!("src/{name}.rs"))).unwrap();
        text.push_str(&format!("\n# {name}\n{}\n", public(&source).join("\n")));
    }
    let path = here.join("api.txt");
    if std::env::var_os("DUNNOCK_BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(
        text,
        std::fs::read_to_string(path).unwrap(),
        "the public face changed: say so in the changelog, and bless it"
    );
}

#[test]
fn a_change_of_a_public_form_is_seen() {
    let seen = public(
        "pub struct A {\n    pub a: u8,\n    b: u8,\n}\n\nimpl A {\n    pub fn f(&self, x: u8) -> \
         u8 {\n        x\n    }\n    fn g() {}\n}\n",
    );
    assert_eq!(seen, ["pub struct A", "  pub a: u8", "impl A :: pub fn f(&self, x: u8) -> u8"]);
    assert_eq!(
        public("pub enum E {\n    /// One.\n    One,\n    Two(u8),\n}\n"),
        ["pub enum E", "  One", "  Two(u8)"]
    );
}

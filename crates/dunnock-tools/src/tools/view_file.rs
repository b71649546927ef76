//! `view_file`.

use crate::edit::Text;
use crate::root::{PathError, RepoPath};
use crate::tool::{Example, Tool, ToolContext, ToolOutput, blocking};
use crate::tools::{list_files, web_fetch};
use dunnock_ports::Blob;
use dunnock_proto::{
    CallId, Class, Hash, MOST_PICTURE_BYTES, MOST_PICTURE_SIDE, Recovery, SeenFile, ToolView,
    count, picture_kind, picture_size,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Maximum lines in one result.
const LINES: usize = 2_000;
/// Maximum bytes in one result.
const BYTES: usize = 128 << 10;
/// Maximum bytes shown of one line.
const WIDTH: usize = 2_000;

/// Reads a file in the workspace, or some of its lines. Each line is shown with its number. Shows
/// PNG, JPEG, GIF and WebP images.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ViewFile {
    /// Path relative to the workspace root; or call:3.0 for the full output of call 3.0, if
    /// shortened.
    #[schemars(length(max = 4096))]
    path: String,
    /// First line to show, from 1.
    #[serde(default)]
    first: Option<u32>,
    /// Last line to show.
    #[serde(default)]
    last: Option<u32>,
    /// For the stateless service: lines without numbers, and only files in the workspace.
    #[serde(default)]
    #[schemars(skip)]
    bare: bool,
}

impl Tool for ViewFile {
    const NAME: &'static str = "view_file";
    const CLASS: Class = Class::Read;
    const RECOVERY: Recovery = Recovery::Repeat;
    const VIEW: ToolView = ToolView { counted: "line", ..ToolView::of_path("read") };
    const EXAMPLES: &'static [Example] = &[
        Example {
            about: "A whole file",
            files: &[("a.txt", "one\ntwo\n")],
            args: r#"{"path":"a.txt"}"#,
            gives: "Read a.txt (lines 1-2 of 2 total)\n\n1  one\n2  two",
            ..Example::PLAIN
        },
        Example {
            about: "Some lines",
            files: &[("a.txt", "one\ntwo\nthree\n")],
            args: r#"{"path":"a.txt","first":2,"last":2}"#,
            gives: "Read a.txt (lines 2-2 of 3 total)\n\n2  two",
            ..Example::PLAIN
        },
        Example {
            about: "A folder: two levels of it",
            files: &[("src/a.txt", "one\n"), ("src/deep/er/b.txt", "two\n")],
            args: r#"{"path":"src"}"#,
            gives: "src is a folder with these files:\nsrc/a.txt\nsrc/deep/\nsrc/deep/er/",
            ..Example::PLAIN
        },
        Example {
            about: "An empty file",
            files: &[("a.txt", "")],
            args: r#"{"path":"a.txt"}"#,
            gives: "empty file: 0 lines",
            ..Example::PLAIN
        },
        Example {
            about: "Lines that do not exist",
            files: &[("a.txt", "one\n")],
            args: r#"{"path":"a.txt","first":5}"#,
            gives: "a.txt ends at line 1; there is no line 5",
            fails: true,
            ..Example::PLAIN
        },
        Example {
            about: "A PDF: how to read it",
            files: &[("a.pdf", "%PDF-1.4\n\0\n")],
            args: r#"{"path":"a.pdf"}"#,
            gives: "a.pdf is a PDF of 11 bytes. Read its text with pdftotext, or make images of its \
                    pages (pdftoppm -r 80 -png) and view those",
            ..Example::PLAIN
        },
        Example {
            about: "A path outside the workspace",
            args: r#"{"path":"../secret"}"#,
            gives: "../secret is outside the workspace; give a path inside it, relative to its \
                    root",
            fails: true,
            ..Example::PLAIN
        },
    ];

    async fn run(self, context: ToolContext) -> ToolOutput {
        if let Some(call) = self
            .path
            .strip_prefix("call:")
            .and_then(|call| call.parse().ok())
            .filter(|_| !self.bare)
        {
            return match output(call, &context).await {
                Ok(bytes) => blocking(move || view_output(&self, &bytes)).await,
                Err(error) => Err::<String, _>(error).into(),
            };
        }
        match tokio::task::spawn_blocking(move || view_file(&self, &context)).await {
            Ok(Ok(Viewed { text, seen, image })) => ToolOutput {
                seen_files: seen.into_iter().collect(),
                image,
                ..Ok::<_, String>(text).into()
            },
            Ok(Err(error)) => Err::<String, _>(error).into(),
            Err(error) => Err::<String, _>(format!("an error inside the agent: {error}")).into(),
        }
    }
}

/// Shows the output of an earlier call. Every part of a page says who wrote it.
fn view_output(args: &ViewFile, bytes: &[u8]) -> Result<String, String> {
    let shown = view(args, &args.path, bytes)?;
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let label = first.starts_with(web_fetch::LABEL.as_bytes()) && args.first.is_some_and(|n| n > 1);
    Ok(match label {
        true => format!("{}\n{shown}", String::from_utf8_lossy(first)),
        false => shown,
    })
}

/// The full output of an earlier call.
async fn output(call: CallId, context: &ToolContext) -> Result<Arc<[u8]>, String> {
    let Some(store) = &context.store else {
        return Err("outputs of earlier calls are not stored here".into());
    };
    let found = store.finished(&context.session, call).await.map_err(|error| error.to_string())?;
    match found.map(|finished| finished.full) {
        Some(Some(hash)) => {
            let blob = store.blob(hash).await.map_err(|error| error.to_string())?;
            blob.ok_or_else(|| format!("the output of call {call} is no longer stored"))
        }
        Some(None) => Err(format!("the output of call {call} was already shown in full")),
        None => Err(format!("there was no call {call}")),
    }
}

/// What there is to see of a file.
#[derive(Default)]
struct Viewed {
    text: String,
    seen: Option<SeenFile>,
    image: Option<Blob>,
}

impl Viewed {
    fn text(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

fn view_file(args: &ViewFile, context: &ToolContext) -> Result<Viewed, String> {
    let path = match RepoPath::parse(&context.files, &args.path) {
        Ok(path) => path,
        Err(error) => {
            let outside = matches!(error, PathError::Outside(_)) && !args.bare;
            return match system(&args.path, context.root.path()).filter(|_| outside) {
                Some(bytes) => view(args, &args.path, &bytes).map(Viewed::text),
                None => Err(error.to_string()),
            };
        }
    };
    if context.files.is_folder(&path) {
        if args.bare {
            return Err(format!("{} is a folder", path.shown()));
        }
        let listed = list_files::two_levels(&args.path, context)?;
        let text = format!("{} is a folder with these files:\n{listed}", path.shown());
        return Ok(Viewed::text(text));
    }
    let contents = match context.files.read(&path) {
        Err(PathError::TooLong(name, size)) => {
            let start = context.files.read_start(&path, BYTES as u64).map_err(|e| e.to_string())?;
            let shown = view(args, &name, &start.bytes)?;
            return Ok(Viewed::text(format!(
                "[TRUNCATED: the first {BYTES} of {size} bytes; to search the rest, call \
                 search_text on its folder]\n{shown}"
            )));
        }
        read => read.map_err(|e| e.to_string())?,
    };
    let seen = Some(SeenFile { path: path.shown(), hash: Hash::of(&contents.bytes) });
    if !args.bare
        && let Some(text) = image(&path.shown(), &contents.bytes)?
    {
        return Ok(Viewed { text, seen, image: Some(Blob::new(contents.bytes)) });
    }
    Ok(Viewed { seen, ..Viewed::text(view(args, &path.shown(), &contents.bytes)?) })
}

/// Describes an image that a model can be shown; `None` if the file is something else.
fn image(name: &str, bytes: &[u8]) -> Result<Option<String>, String> {
    let Some((kind, (width, height))) = picture_kind(bytes).zip(picture_size(bytes)) else {
        return Ok(None);
    };
    let kind = kind.trim_start_matches("image/").to_uppercase();
    let size = bytes.len() as u64;
    if size > MOST_PICTURE_BYTES || width.max(height) > MOST_PICTURE_SIDE {
        return Err(format!(
            "{name} is too large to be shown: {kind}, {width} x {height} pixels, {} KB (at most \
             {MOST_PICTURE_SIDE} pixels a side and {} KB). Make a smaller copy and view that",
            size.div_ceil(1024),
            MOST_PICTURE_BYTES / 1024
        ));
    }
    let size = size.div_ceil(1024);
    Ok(Some(format!("{name} is an image: {kind}, {width} x {height} pixels, {size} KB")))
}

/// System folders that anyone may read: headers, libraries, documentation.
const SYSTEM: &[&str] = &[
    "/usr/include",
    "/usr/lib",
    "/usr/share",
    "/usr/local/include",
    "/usr/local/lib",
    "/usr/src",
    "/lib",
];

/// Reads a regular file, if it is in one of these folders and not in the workspace, which has rules of
/// its own.
fn system(path: &str, workspace: &std::path::Path) -> Option<Vec<u8>> {
    use std::io::Read as _;
    let path = std::path::Path::new(path.trim());
    let within = |path: &std::path::Path| SYSTEM.iter().any(|folder| path.starts_with(folder));
    let plain = path
        .components()
        .all(|c| matches!(c, std::path::Component::RootDir | std::path::Component::Normal(_)));
    let real = path
        .canonicalize()
        .ok()
        .filter(|real| plain && within(path) && within(real) && real.is_file())
        .filter(|real| !real.starts_with(workspace))?;
    let mut bytes = Vec::new();
    std::fs::File::open(real).ok()?.take(8 << 20).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn view(args: &ViewFile, name: &str, bytes: &[u8]) -> Result<String, String> {
    if bytes.is_empty() {
        return Ok("empty file: 0 lines".into());
    }
    let Ok(text) = Text::decode(bytes) else {
        if bytes.starts_with(b"%PDF-") && !args.bare {
            let size = bytes.len();
            return Ok(format!(
                "{name} is a PDF of {size} bytes. Read its text with pdftotext, or make images of \
                 its pages (pdftoppm -r 80 -png) and view those"
            ));
        }
        return Ok(format!("{name} is a binary file of {} bytes", bytes.len()));
    };
    let total = text.len();
    let first = args.first.unwrap_or(1).max(1) as usize;
    let last = args.last.map_or(total, |l| l as usize).min(total);
    if first > total {
        return Err(format!("{name} ends at line {total}; there is no line {first}"));
    }
    if last < first {
        return Err(format!("last ({last}) comes before first ({first})"));
    }
    let width = last.to_string().len();
    let mut body = String::new();
    let mut shown = 0;
    for n in (first - 1..last).take(LINES) {
        let line = text.line(n);
        let cut = line.floor_char_boundary(if args.bare { BYTES / 2 } else { WIDTH });
        let rest = line.len() - cut;
        let more = if rest > 0 {
            format!(" [{} in this line]", count(rest, "more byte"))
        } else {
            String::new()
        };
        let line = match args.bare {
            true => format!("{}{more}\n", line.get(..cut).unwrap_or_default()),
            false => format!("{:>width$}  {}{more}\n", n + 1, line.get(..cut).unwrap_or_default()),
        };
        if body.len() + line.len() > BYTES {
            break;
        }
        body.push_str(&line);
        shown += 1;
    }
    let end = first + shown - 1;
    let mut out = String::new();
    if end < last {
        out = format!("[TRUNCATED: showing first {shown} lines, {} more available]\n", last - end);
    }
    out.push_str(&format!(
        "Read {name} (lines {first}-{end} of {total} total)\n\n{}",
        body.strip_suffix('\n').unwrap_or(&body)
    ));
    Ok(out)
}

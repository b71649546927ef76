//! Pictures of the terminal app for the README and the docs: captured from a real terminal and
//! drawn as SVG.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

type Done = Result<(), Box<dyn std::error::Error>>;

/// Each shot: its name, the theme, and the text at which the demo is captured.
const SHOTS: &[(&str, &str, &str)] = &[
    ("working-dark", "dark", "I'll fix it and run"),
    ("question-dark", "dark", "e explain"),
    ("proven-dark", "dark", "undo: /undo"),
    ("question-light", "light", "e explain"),
    ("proven-light", "light", "undo: /undo"),
];
const COLUMNS: usize = 84;
const ROWS: usize = 27;

/// The text at which the recording ends, and how long its last screen stays.
const LAST: (&str, Duration) = ("undo: /undo", Duration::from_secs(5));
/// Screens of the recording are at least this far apart.
const APART: Duration = Duration::from_millis(250);

/// A screen with its escape sequences, and when it appeared.
type Screen = (Duration, String);

/// Plays the program's demo in tmux and writes the captured screens and a recording to
/// `docs/pictures`.
pub fn make(program: &Path) -> Done {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no workspace")?;
    let program = root.join(program);
    let folder = root.join("docs/pictures");
    std::fs::create_dir_all(&folder)?;
    for (name, theme, stop) in SHOTS {
        let screens = capture(&program, theme, stop)?;
        let (_, last) = screens.last().ok_or("nothing was captured")?;
        std::fs::write(folder.join(format!("{name}.svg")), draw(last, *theme == "dark"))?;
    }
    let screens = capture(&program, "dark", LAST.0)?;
    std::fs::write(folder.join("recording-dark.svg"), animate(&screens, true))?;
    Ok(())
}

/// The screens of the demo, until one shows the text `stop`.
fn capture(
    program: &Path,
    theme: &str,
    stop: &str,
) -> Result<Vec<Screen>, Box<dyn std::error::Error>> {
    let home = std::env::temp_dir().join(format!("webshop-{}", std::process::id()));
    let project = home.join("webshop");
    std::fs::create_dir_all(&project)?;
    let tmux = |args: &[&str]| {
        Command::new("tmux")
            .env_remove("TMUX")
            .env("TMUX_TMPDIR", &home)
            .args(["-L", "p", "-f", "/dev/null"])
            .args(args)
            .output()
    };
    let start = format!(
        "cd {} && exec env -i PATH=\"$PATH\" HOME={} TERM=tmux-256color COLORTERM=truecolor \
         DUNNOCK_THEME={theme} {} --data-dir {}",
        project.display(),
        home.display(),
        program.display(),
        home.join("data").display()
    );
    let (columns, rows) = (COLUMNS.to_string(), ROWS.to_string());
    tmux(&["new-session", "-d", "-x", &columns, "-y", &rows, "-s", "s", &start])?;
    tmux(&["set-option", "-ga", "terminal-overrides", ",*:Tc"])?;
    let wait = |text: &str| -> Result<Vec<Screen>, Box<dyn std::error::Error>> {
        let began = Instant::now();
        let mut screens: Vec<Screen> = Vec::new();
        loop {
            let plain = String::from_utf8_lossy(&tmux(&["capture-pane", "-p", "-t", "s"])?.stdout)
                .into_owned();
            let found = plain.contains(text);
            let at = began.elapsed();
            if found || screens.last().is_none_or(|(then, _)| at - *then >= APART) {
                let shown = tmux(&["capture-pane", "-p", "-e", "-t", "s"])?.stdout;
                let shown = String::from_utf8_lossy(&shown).into_owned();
                if screens.last().is_none_or(|(_, last)| *last != shown) {
                    screens.push((at, shown));
                }
            }
            if found {
                return Ok(screens);
            }
            if began.elapsed() > Duration::from_secs(40) {
                return Err(format!("{text:?} never appeared:\n{plain}").into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait("To do")?;
    tmux(&["send-keys", "-t", "s", "-l", "/demo"])?;
    tmux(&["send-keys", "-t", "s", "Enter"])?;
    let seen = wait(stop);
    tmux(&["kill-server"])?;
    std::fs::remove_dir_all(&home)?;
    seen
}

#[derive(Clone, PartialEq, Default)]
struct Look {
    colour: Option<String>,
    bold: bool,
    italic: bool,
    underline: bool,
    reverse: bool,
}

/// Draws a screen with its escape sequences as SVG.
fn draw(screen: &str, dark: bool) -> String {
    let (back, text) = if dark { ("#1d1b19", "#dcd7cf") } else { ("#faf8f5", "#2b2825") };
    let rows: Vec<&str> = screen.trim_end().lines().collect();
    let (wide, tall) = (COLUMNS * 8 + 32, rows.len() * 18 + 32);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {tall}\" width=\"{wide}\" \
         height=\"{tall}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, \
         monospace\" font-size=\"13.3\">\n<rect width=\"100%\" height=\"100%\" rx=\"8\" \
         fill=\"{back}\"/>\n"
    );
    let mut look = Look::default();
    for (n, row) in rows.iter().enumerate() {
        draw_row(&mut svg, row, 28 + n * 18, (back, text), &mut look);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws screens one after the other as an animated SVG, for ever. Each different row is drawn once.
/// Readers who want no motion see the last screen.
fn animate(screens: &[Screen], dark: bool) -> String {
    let (back, text) = if dark { ("#1d1b19", "#dcd7cf") } else { ("#faf8f5", "#2b2825") };
    let (wide, tall) = (COLUMNS * 8 + 32, ROWS * 18 + 32);
    let start = screens.first().map_or(Duration::ZERO, |(at, _)| *at);
    let whole = screens.last().map_or(Duration::ZERO, |(at, _)| *at) - start + LAST.1;
    let (mut rows, mut styles, mut frames) = (Vec::<String>::new(), String::new(), String::new());
    for (n, (at, screen)) in screens.iter().enumerate() {
        let part = |at: Duration| 100.0 * (at - start).as_secs_f64() / whole.as_secs_f64();
        let (from, to) = (part(*at), screens.get(n + 1).map_or(100.0, |(next, _)| part(*next)));
        let _ = writeln!(
            styles,
            "@keyframes k{n} {{ 0%, {from:.2}% {{ visibility: hidden }} {:.2}%, {to:.2}% {{ \
             visibility: visible }} {:.2}%, 100% {{ visibility: hidden }} }} #f{n} {{ animation: \
             k{n} {:.2}s step-end infinite }}",
            from + 0.001,
            (to + 0.001).min(100.0),
            whole.as_secs_f64()
        );
        let last = if n + 1 == screens.len() { " class=\"last\"" } else { "" };
        let _ = writeln!(frames, "<g id=\"f{n}\"{last}>");
        let mut look = Look::default();
        for (line, row) in screen.trim_end().lines().enumerate() {
            let mut drawn = String::new();
            draw_row(&mut drawn, row, 28, (back, text), &mut look);
            if drawn.is_empty() {
                continue;
            }
            let known = rows.iter().position(|other| *other == drawn).unwrap_or_else(|| {
                rows.push(drawn);
                rows.len() - 1
            });
            let _ = writeln!(frames, "<use href=\"#r{known}\" y=\"{}\"/>", line * 18);
        }
        frames.push_str("</g>\n");
    }
    let rows: String =
        rows.iter().enumerate().map(|(n, row)| format!("<g id=\"r{n}\">\n{row}</g>\n")).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {tall}\" width=\"{wide}\" \
         height=\"{tall}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, \
         monospace\" font-size=\"13.3\">\n<style>\n{styles}@media (prefers-reduced-motion) {{ g[id^=f] \
         {{ animation: none !important; visibility: hidden }} g.last {{ visibility: visible }} \
         }}\n</style>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" \
         fill=\"{back}\"/>\n<defs>\n{rows}</defs>\n{frames}</svg>\n"
    )
}

/// Draws a row at the height `y`, in the colours of background and text.
fn draw_row(svg: &mut String, row: &str, y: usize, (back, text): (&str, &str), look: &mut Look) {
    let mut column = 0;
    for (style, piece) in pieces(row, look) {
        let chars = piece.chars().count();
        let at = 16 + column * 8;
        let colour = style.colour.as_deref().unwrap_or(text);
        let colour = if style.reverse {
            let _ = writeln!(
                svg,
                "<rect x=\"{at}\" y=\"{}\" width=\"{}\" height=\"18\" fill=\"{colour}\"/>",
                y - 13,
                chars * 8
            );
            back
        } else {
            colour
        };
        if !piece.trim().is_empty() {
            let weight = if style.bold { " font-weight=\"bold\"" } else { "" };
            let slant = if style.italic { " font-style=\"italic\"" } else { "" };
            let line = if style.underline { " text-decoration=\"underline\"" } else { "" };
            let words = piece.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let _ = writeln!(
                svg,
                "<text x=\"{at}\" y=\"{y}\" fill=\"{colour}\" textLength=\"{}\" \
                 xml:space=\"preserve\"{weight}{slant}{line}>{words}</text>",
                chars * 8
            );
        }
        column += chars;
    }
}

/// Splits a row into pieces with the same style; a style lasts until it is changed.
fn pieces(row: &str, look: &mut Look) -> Vec<(Look, String)> {
    let mut out: Vec<(Look, String)> = Vec::new();
    let mut rest = row;
    while !rest.is_empty() {
        if let Some(sequence) = rest.strip_prefix("\x1b[") {
            let end =
                sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(sequence.len() - 1);
            change(look, &sequence[..end]);
            rest = &sequence[end + 1..];
        } else if let Some(link) = rest.strip_prefix("\x1b]") {
            rest = link.split_once("\x1b\\").map_or("", |(_, after)| after);
        } else {
            let end = rest.find('\x1b').filter(|at| *at > 0).unwrap_or(rest.len());
            out.push((look.clone(), rest[..end].replace('\x1b', "")));
            rest = &rest[end..];
        }
    }
    out
}

fn change(look: &mut Look, codes: &str) {
    const SIXTEEN: [&str; 8] =
        ["#000000", "#c0392b", "#27803b", "#a06a00", "#2a6db0", "#8a4fa3", "#1f8a8a", "#bbbbbb"];
    let numbers: Vec<u32> = codes.split(';').map(|n| n.parse().unwrap_or(0)).collect();
    let mut at = 0;
    while let Some(code) = numbers.get(at) {
        match code {
            0 => *look = Look::default(),
            1 => look.bold = true,
            3 => look.italic = true,
            4 => look.underline = true,
            7 => look.reverse = true,
            22 => look.bold = false,
            23 => look.italic = false,
            24 => look.underline = false,
            27 => look.reverse = false,
            39 => look.colour = None,
            n @ 30..=37 => look.colour = SIXTEEN.get(*n as usize - 30).map(|c| (*c).to_owned()),
            90 => look.colour = Some("#8a8680".into()),
            38 if numbers.get(at + 1) == Some(&2) => {
                let part = |n: usize| numbers.get(at + n).copied().unwrap_or(0);
                look.colour = Some(format!("#{:02x}{:02x}{:02x}", part(2), part(3), part(4)));
                at += 4;
            }
            _ => {}
        }
        at += 1;
    }
}

//! How each tone looks: dark, light, the terminal's own 16 colours, or none.

use crate::text::{Line, Style, Tone};
use std::fmt::Write as _;

/// A set of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// For dark backgrounds, in 24-bit colour.
    Dark,
    /// For light backgrounds, in 24-bit colour.
    Light,
    /// The terminal's own 16 colours.
    Sixteen,
    /// No colours, only attributes such as bold, dim and reverse.
    Mono,
}

/// Every theme: name, value, description.
pub const THEMES: &[(&str, Theme, &str)] = &[
    ("dark", Theme::Dark, "for dark screens"),
    ("light", Theme::Light, "for light screens"),
    ("16", Theme::Sixteen, "your terminal's own sixteen colours"),
    ("mono", Theme::Mono, "no colours"),
];

/// Environment variables that affect colours.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `NO_COLOR`, if it is not empty.
    pub no_color: bool,
    /// `COLORTERM`.
    pub colorterm: String,
    /// `COLORFGBG`: the terminal's colours, if it reports them.
    pub colorfgbg: String,
    /// `TERM`.
    pub term: String,
}

impl Theme {
    /// Finds a theme by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        THEMES.iter().find(|(known, ..)| *known == name).map(|(_, theme, _)| *theme)
    }
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        THEMES.iter().find(|(_, theme, _)| *theme == self).map_or("dark", |(name, ..)| name)
    }
    /// The theme for a setting and an environment. `NO_COLOR` and dumb terminals come first, then
    /// the setting, then what the terminal reports.
    #[must_use]
    pub fn chosen(setting: &str, env: &Environment) -> Self {
        if env.no_color || env.term == "dumb" {
            return Self::Mono;
        }
        if let Some(theme) = Self::named(setting) {
            return theme;
        }
        let rich = matches!(env.colorterm.as_str(), "truecolor" | "24bit");
        let background = env.colorfgbg.rsplit(';').next().and_then(|n| n.parse::<u8>().ok());
        match (rich, background) {
            (false, _) => Self::Sixteen,
            (true, Some(7 | 15)) => Self::Light,
            (true, _) => Self::Dark,
        }
    }

    /// The SGR code of a tone; empty for the terminal's default colour.
    fn colour(self, tone: Tone) -> &'static str {
        use Tone::{
            Accent, Added, Bad, Code, Comment, Good, Keyword, Link, Number, Quiet, Quoted, Removed,
            Text, User, Warn,
        };
        match (self, tone) {
            (Self::Mono, Quiet | Comment) => "2",
            (Self::Mono, _) | (_, Text) => "",
            (Self::Dark, Quiet | Comment) => "38;2;139;134;128",
            (Self::Dark, User | Link) => "38;2;122;171;222",
            (Self::Dark, Accent) => "38;2;201;153;106",
            (Self::Dark, Good | Added) => "38;2;134;188;122",
            (Self::Dark, Bad | Removed) => "38;2;226;122;112",
            (Self::Dark, Warn) => "38;2;226;179;91",
            (Self::Dark, Code) => "38;2;217;186;148",
            (Self::Dark, Keyword) => "38;2;196;154;214",
            (Self::Dark, Quoted) => "38;2;151;190;122",
            (Self::Dark, Number) => "38;2;222;163;114",
            (Self::Light, Quiet | Comment) => "38;2;112;107;100",
            (Self::Light, User | Link) => "38;2;22;92;158",
            (Self::Light, Accent) => "38;2;133;84;38",
            (Self::Light, Good | Added) => "38;2;36;110;40",
            (Self::Light, Bad | Removed) => "38;2;176;42;34",
            (Self::Light, Warn) => "38;2;148;94;0",
            (Self::Light, Code) => "38;2;122;74;32",
            (Self::Light, Keyword) => "38;2;122;52;150",
            (Self::Light, Quoted) => "38;2;54;104;28",
            (Self::Light, Number) => "38;2;158;78;12",
            (Self::Sixteen, Quiet | Comment) => "90",
            (Self::Sixteen, User | Link) => "34",
            (Self::Sixteen, Accent | Warn) => "33",
            (Self::Sixteen, Good | Added | Quoted) => "32",
            (Self::Sixteen, Bad | Removed) => "31",
            (Self::Sixteen, Code) => "36",
            (Self::Sixteen, Keyword | Number) => "35",
        }
    }

    fn begin(self, style: Style) -> String {
        let mut codes: Vec<&str> = Vec::new();
        let marks = [
            (style.bold, "1"),
            (style.italic, "3"),
            (style.underline, "4"),
            (style.reverse, "7"),
            (style.strike, "9"),
        ];
        codes.extend(marks.iter().filter(|(on, _)| *on).map(|(_, code)| *code));
        codes.extend(Some(self.colour(style.tone)).filter(|colour| !colour.is_empty()));
        if codes.is_empty() { String::new() } else { format!("\x1b[{}m", codes.join(";")) }
    }

    /// A line as it is sent to the terminal, with only our own escape sequences.
    #[must_use]
    pub fn paint(self, line: &Line) -> String {
        let mut out = String::new();
        for span in &line.0 {
            if span.text().is_empty() {
                continue;
            }
            let begin = self.begin(span.style());
            if let Some(link) = span.link() {
                let _ = write!(out, "\x1b]8;;{link}\x1b\\");
            }
            out.push_str(&begin);
            out.push_str(span.text());
            if !begin.is_empty() {
                out.push_str("\x1b[m");
            }
            if span.link().is_some() {
                out.push_str("\x1b]8;;\x1b\\");
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses_the_theme() {
        let env = |no_color, colorterm: &str, colorfgbg: &str| Environment {
            no_color,
            colorterm: colorterm.into(),
            colorfgbg: colorfgbg.into(),
            term: "xterm".into(),
        };
        assert_eq!(
            Theme::chosen("dark", &env(true, "truecolor", "")),
            Theme::Mono,
            "NO_COLOR comes first"
        );
        assert_eq!(Theme::chosen("auto", &env(false, "", "0;15")), Theme::Sixteen);
        assert_eq!(Theme::chosen("auto", &env(false, "truecolor", "0;15")), Theme::Light);
        assert_eq!(Theme::chosen("auto", &env(false, "truecolor", "15;0")), Theme::Dark);
        assert_eq!(Theme::chosen("light", &env(false, "", "")), Theme::Light, "what is set counts");
    }

    #[test]
    fn without_colour_nothing_is_coloured() {
        let line = Line::of("x", Tone::Bad).and("y", Style::of(Tone::Accent).bold());
        assert_eq!(Theme::Mono.paint(&line), "x\x1b[1my\x1b[m");
    }
}

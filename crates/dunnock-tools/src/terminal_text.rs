//! What a program wrote to a terminal, as plain text; and keys by name.

/// Removes escape sequences and what was overwritten in its line.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    // A carriage return that is not part of a line end: the next text begins the line anew.
    let mut returns = false;
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => skip_escape(&mut chars),
            '\r' => returns = true,
            '\n' => {
                out.push('\n');
                returns = false;
            }
            '\x08' => {
                if !out.ends_with('\n') {
                    out.pop();
                }
            }
            '\t' => out.push(c),
            c if c.is_control() => {}
            c => {
                if returns {
                    out.truncate(out.rfind('\n').map_or(0, |end| end + 1));
                    returns = false;
                }
                out.push(c);
            }
        }
    }
    out
}

/// Skips the rest of an escape sequence.
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        // Parameters, then a letter or sign.
        Some('[') => while chars.next().is_some_and(|c| !('\x40'..='\x7e').contains(&c)) {},
        // A text, until a bell or an escape with a backslash.
        Some(']' | 'P' | '_' | '^') => {
            while let Some(c) = chars.next() {
                if c == '\x07' || (c == '\x1b' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        // A character set.
        Some('(' | ')' | '#' | '%') => drop(chars.next()),
        Some(_) | None => {}
    }
}

/// What a terminal sends for a key.
pub(crate) fn key(name: &str) -> Option<String> {
    let plain = match name.to_lowercase().as_str() {
        "enter" | "return" => "\r",
        "tab" => "\t",
        "escape" | "esc" => "\x1b",
        "space" => " ",
        "backspace" => "\x7f",
        "up" => "\x1b[A",
        "down" => "\x1b[B",
        "right" => "\x1b[C",
        "left" => "\x1b[D",
        "home" => "\x1b[H",
        "end" => "\x1b[F",
        "pageup" => "\x1b[5~",
        "pagedown" => "\x1b[6~",
        "delete" => "\x1b[3~",
        other => {
            let letter = other.strip_prefix("c-").or_else(|| other.strip_prefix("ctrl+"))?;
            let mut letters = letter.bytes();
            let (Some(one @ b'a'..=b'z'), None) = (letters.next(), letters.next()) else {
                return None;
            };
            return Some(char::from(one - b'a' + 1).to_string());
        }
    };
    Some(plain.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_overwritten_text_are_removed() {
        for (written, read) in [
            ("one\r\ntwo\r\n", "one\ntwo\n"),
            ("\x1b[1;31mred\x1b[0m plain", "red plain"),
            ("10 %\r50 %\r100 %\r\ndone", "100 %\ndone"),
            ("\x1b]0;title\x07>>> ", ">>> "),
            ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("abx\x08c", "abc"),
            ("\x1b(Bä\x07ö", "äö"),
            ("cut \x1b[3", "cut "),
        ] {
            assert_eq!(plain(written), read, "{written:?}");
        }
    }

    #[test]
    fn keys_have_names() {
        assert_eq!(key("C-c").as_deref(), Some("\x03"));
        assert_eq!(key("ctrl+D").as_deref(), Some("\x04"));
        assert_eq!(key("Enter").as_deref(), Some("\r"));
        assert_eq!(key("Up").as_deref(), Some("\x1b[A"));
        assert_eq!((key("C-"), key("C-cc"), key("C-é"), key("x")), (None, None, None, None));
    }
}

//! A profile for the macOS sandbox, as text. Not used yet and never tried on a real system: there,
//! commands run at level D.

use std::fmt::Write as _;
use std::path::Path;

/// What a sandboxed command may access on macOS.
#[derive(Debug, Clone, Copy)]
pub struct Seatbelt<'a> {
    /// The workspace, which it may write.
    pub workspace: &'a Path,
    /// Paths in the workspace that are read-only.
    pub closed: &'a [std::path::PathBuf],
    /// Files and folders that cannot be read.
    pub hidden: &'a [std::path::PathBuf],
    /// Writable folders outside the workspace: caches, temporary files.
    pub writable: &'a [std::path::PathBuf],
    /// Readable folders besides those of the system.
    pub readable: &'a [std::path::PathBuf],
    /// Allow network access.
    pub network: bool,
}

/// A path, quoted for the profile language.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

impl Seatbelt<'_> {
    /// The profile: what is not allowed is denied, and later rules override earlier ones.
    #[must_use]
    pub fn profile(&self) -> String {
        let mut text = String::from(
            "(version 1)\n(deny default)\n(allow process-fork)\n(allow process-exec)\n(allow \
             signal (target same-sandbox))\n(allow process-info* (target same-sandbox))\n(allow \
             sysctl-read)\n(allow file-read-metadata)\n(allow file-ioctl (subpath \"/dev\"))\n",
        );
        for path in [
            "/usr",
            "/bin",
            "/sbin",
            "/System",
            "/Library/Developer",
            "/opt",
            "/private/etc",
            "/dev",
        ] {
            let _ = writeln!(text, "(allow file-read* (subpath \"{path}\"))");
        }
        for path in ["/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper"] {
            let _ = writeln!(text, "(allow file-write* (literal \"{path}\"))");
        }
        for path in self.readable {
            let _ = writeln!(text, "(allow file-read* (subpath {}))", quoted(path));
        }
        for path in std::iter::once(self.workspace)
            .chain(self.writable.iter().map(std::path::PathBuf::as_path))
        {
            let _ = writeln!(text, "(allow file-read* file-write* (subpath {}))", quoted(path));
        }
        for path in self.closed {
            let _ = writeln!(text, "(deny file-write* (subpath {}))", quoted(path));
        }
        for path in self.hidden {
            let _ = writeln!(text, "(deny file-read* file-write* (subpath {}))", quoted(path));
        }
        text.push_str(match self.network {
            true => "(allow network*)\n(allow system-socket)\n",
            // There is no private loopback on macOS: test servers may listen, and nothing else is
            // reachable.
            false => {
                "(allow network-bind (local ip \"localhost:*\"))\n(allow network-inbound (local ip \
                 \"localhost:*\"))\n"
            }
        });
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(network: bool) -> String {
        let (closed, hidden) =
            (["/w/.git/hooks".into(), "/w/a \"b\" \\c".into()], ["/w/.env".into()]);
        let (writable, readable) = (["/c".into()], ["/Users/p/.rustup".into()]);
        let seatbelt = Seatbelt {
            workspace: Path::new("/w"),
            closed: &closed,
            hidden: &hidden,
            writable: &writable,
            readable: &readable,
            network,
        };
        seatbelt.profile()
    }

    #[test]
    fn what_is_denied_comes_after_what_is_allowed() {
        let text = profile(false);
        let at = |line: &str| {
            text.lines()
                .position(|l| l == line)
                .unwrap_or_else(|| panic!("{line} is missing in\n{text}"))
        };
        assert_eq!((at("(version 1)"), at("(deny default)")), (0, 1));
        let work = at("(allow file-read* file-write* (subpath \"/w\"))");
        assert!(work < at("(deny file-write* (subpath \"/w/.git/hooks\"))"));
        assert!(work < at("(deny file-read* file-write* (subpath \"/w/.env\"))"));
        assert!(text.contains("(subpath \"/w/a \\\"b\\\" \\\\c\")"), "names are data: {text}");
        assert!(!text.contains("network*") && profile(true).contains("(allow network*)"));
    }

    #[test]
    fn every_line_is_one_balanced_form() {
        for line in profile(false).lines().chain(profile(true).lines()) {
            let (mut depth, mut quoted, mut escaped) = (0, false, false);
            for (n, c) in line.chars().enumerate() {
                match c {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    '"' => quoted = !quoted,
                    '(' if !quoted => depth += 1,
                    ')' if !quoted => depth -= 1,
                    _ => {}
                }
                assert!(depth > 0 || n + 1 == line.chars().count(), "{line}");
            }
            assert!(depth == 0 && !quoted, "{line}");
        }
    }
}

//! Which configuration of a new repository runs nothing.

/// Settings that `git init` and `git clone` write, and that run nothing.
const TAME: &[&str] = &[
    "repositoryformatversion",
    "filemode",
    "bare",
    "logallrefupdates",
    "ignorecase",
    "precomposeunicode",
    "symlinks",
    "name",
    "email",
    "url",
    "fetch",
    "remote",
    "merge",
    "objectformat",
    "refstorage",
    "defaultbranch",
    "rebase",
    "tagopt",
    "active",
    "gpgsign",
    "autocrlf",
    "eol",
    "auto",
];
/// The sections that may hold them.
const SECTIONS: &[&str] = &[
    "[core]",
    "[user]",
    "[remote \"",
    "[branch \"",
    "[extensions]",
    "[init]",
    "[commit]",
    "[submodule]",
    "[submodule \"",
    "[gc]",
];

/// Whether a configuration file of git runs nothing and reads nothing elsewhere.
/// That of a submodule also names its work tree.
pub(crate) fn is_tame(text: &str, submodule: bool) -> bool {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    text.len() < 10_000
        && lines.into_iter().all(|line| match line.split_once('=') {
            None => {
                SECTIONS.iter().any(|known| line.starts_with(known))
                    && line.ends_with(']')
                    && line.matches(['[', ']']).count() == 2
            }
            Some((key, value)) => {
                let work_tree = submodule && key.trim() == "worktree";
                let up = value.trim().starts_with("../");
                (TAME.contains(&key.trim()) || (work_tree && up))
                    && !value.contains("::")
                    && !value.contains(['"', '\\'])
                    && !line.contains(']')
                    && !line.ends_with('\\')
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_writes_itself_is_tame_and_what_runs_programs_is_not() {
        let plain = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = https://x/y\n\tfetch = +a:b\n";
        assert!(is_tame(plain, false));
        let submodule = "[core]\n\tbare = false\n\tworktree = ../../../x\n";
        assert!(is_tame(submodule, true) && !is_tame(submodule, false));
        for evil in [
            "[core]\n\tfsmonitor = touch x\n",
            "[core]\n\tpager = x\n",
            "[alias]\n\tst = !x\n",
            "[include]\n\tpath = ../x\n",
            "[core] fsmonitor = x\n",
            "[remote \"o\"]\n\turl = ext::sh -c x\n",
            "[core]\n\tbare = false \\\n",
            "[core] [pager]\n\tfetch = /x\n",
            "[remote \"o\"]\n\turl = ex\"t\"::x\n",
            "[core]\n\tworktree = ..\n",
        ] {
            assert!(!is_tame(evil, false), "{evil}");
        }
    }
}

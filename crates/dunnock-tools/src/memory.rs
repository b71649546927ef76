//! What a planner remembers between runs: a file in the workspace, where no call can write.

use dunnock_proto::{Hash, Planner, StepRules};
use std::path::Path;

/// The memory folder, relative to the workspace.
pub const MEMORY: &str = ".dunnock/agent-memory";
/// The largest memory file that is read, in bytes.
const MOST: u64 = 64 << 10;

/// A planner for a task, with the memory of its earlier runs.
#[must_use]
pub fn planner(workspace: &Path, task: &str, allow: Vec<String>) -> Planner {
    let file = format!("{}.txt", name(task));
    let memory = read(&workspace.join(MEMORY).join(&file)).unwrap_or_default();
    Planner { file, memory, allow, steps: StepRules::PLANNER }
}

/// The file name of a task's memory: its words, and a hash where they are not enough to identify
/// it.
fn name(task: &str) -> String {
    let mut name = String::new();
    for c in task.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_lowercase()),
            _ if name.ends_with('-') || name.is_empty() => {}
            _ => name.push('-'),
        }
    }
    let short: String = name.chars().take(48).collect();
    let short = short.trim_end_matches('-');
    let whole = name.trim_end_matches('-') == short && task.is_ascii() && !short.is_empty();
    let hash: String = Hash::of(task.as_bytes()).to_string().chars().take(8).collect();
    match (whole, short.is_empty()) {
        (true, _) => short.to_owned(),
        (false, true) => format!("task-{hash}"),
        (false, false) => format!("{short}-{hash}"),
    }
}

/// Its contents, if it is a regular file that is not reached through a link.
fn read(path: &Path) -> Option<String> {
    let folder = path.parent()?;
    let plain = path.symlink_metadata().ok().filter(|meta| meta.is_file() && meta.len() <= MOST);
    if folder.canonicalize().ok()? != folder || plain.is_none() {
        return None;
    }
    String::from_utf8(std::fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn a_memory_is_named_after_its_task() {
        assert_eq!(name("Fix the tests!"), "fix-the-tests");
        assert_eq!(name("../../etc/passwd"), "etc-passwd");
        let long = name(&"very long ".repeat(20));
        assert!(long.len() <= 57 && long.starts_with("very-long-"), "{long}");
        assert_ne!(name("修复测试"), name("修复代码"));
        assert!(name("修复测试").starts_with("task-"));
        assert_ne!(name("fix tests é"), name("fix tests ü"));
    }
}

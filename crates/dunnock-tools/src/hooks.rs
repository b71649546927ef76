//! Hooks of git that must not have more access than other commands.
//!
//! A call with more access runs git without hooks, because calls that nobody approved can change
//! what a hook runs. The hook of a push runs before it, in the ordinary sandbox.

use crate::context::CallContext;
use crate::output::{ToolOutput, ToolStatus};
use crate::process::{self, Program};
use dunnock_core::policy;
use dunnock_proto::{Access, CommandText};
use std::time::Duration;

/// Runs the hook for a push of the current branch. The remote's commit is the one that is known
/// here, or zeros. The hook has no network.
const BEFORE_PUSH: &str = r#"
hooks=$(git rev-parse --path-format=absolute --git-path hooks 2>/dev/null) || exit 0
[ -x "$hooks/pre-push" ] || exit 0
branch=$(git symbolic-ref -q HEAD) || branch=HEAD
remote=${1:-$(git config "branch.${branch#refs/heads/}.remote" || echo origin)}
url=$(git remote get-url --push "$remote" 2>/dev/null || printf %s "$remote")
commit=$(git rev-parse -q --verify HEAD) || exit 0
cd "$(git rev-parse --show-toplevel)" || exit 1
known=$(git rev-parse -q --verify "refs/remotes/$remote/${branch#refs/heads/}") || known=$(printf %040d 0)
printf '%s %s %s %s\n' "$branch" "$commit" "$branch" "$known" | "$hooks/pre-push" "$remote" "$url"
"#;

/// Runs the hook before a push, if the call has more access than the hook may have. Returns the
/// output of a hook that failed; then nothing is pushed.
pub(crate) async fn before_push(
    context: &CallContext,
    push: &Program,
    command: &CommandText,
    most: Duration,
) -> Option<ToolOutput> {
    context.approved()?;
    let remote = policy::pushes_to(command)?;
    let context = CallContext { access: Access::NOTHING, ..context.clone() };
    let words = ["sh", "-c", BEFORE_PUSH, "pre-push", remote.as_str()];
    let hook = push.beside(words.map(str::to_owned).to_vec());
    let mut output = process::run(&context, hook, most).await;
    if output.end == ToolStatus::Done {
        return None;
    }
    output.text.push_str(
        "\n[the pre-push hook failed, so nothing was pushed; it ran in the sandbox, without network]",
    );
    Some(output)
}

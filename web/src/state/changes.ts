/** The order and the length in which changed files are shown. */

import type { Change } from '../api.gen';

/** Folders and files that programs write: they come after what people write. */
const MADE =
  /(^|\/)(node_modules|vendor|third_party|dist|build|out|target|coverage|__pycache__|\.venv|venv)\/|(^|\/)(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|poetry\.lock|uv\.lock|go\.sum)$|\.(min\.js|min\.css|map|snap)$/;

/** Lines of a new file above which it is folded. */
const LONG = 200;

const rank = (change: Change) =>
  (MADE.test(change.path) ? 2 : 0) + (change.how === 'changed' ? 0 : 1);

/** Edited sources first, then new ones, then what programs wrote; otherwise in the given order. */
export const sourcesFirst = (changes: Change[]): Change[] =>
  changes
    .map((change, n) => ({ change, n }))
    .sort((a, b) => rank(a.change) - rank(b.change) || a.n - b.n)
    .map(({ change }) => change);

export const isLongAddition = (change: Change) =>
  change.how === 'added' && change.diff.split('\n').length > LONG;

/**
 * A question as it is shown for a decision: built from the arguments that would run and Dunnock's
 * own description of them, never from the model's. Texts and keys match the terminal app
 * (`dunnock-tui/src/panel.rs`).
 */

import type { OpenQuestion } from '../api.gen';
import type { Answer, QuestionKind, Rule } from '../proto.gen';
import { folded, visible, warnings } from '../text/safe';
import { change, gist, inChange, isCommand, shownArguments, title as callTitle } from './words';

/** Milliseconds before a key counts, so that a key meant for something else does not answer. */
export const GUARD = 300;

export interface Row {
  name: string;
  value: string;
}

export interface Shown {
  id: number;
  hash: string;
  heading: string;
  /** Why approval is needed, in Dunnock's words. */
  reasons: string[];
  /** Exactly what would run, all of it. */
  exact: string[];
  /** `exact` holds lines of a change, each with its sign. */
  isChange: boolean;
  rows: Row[];
  careful: string[];
  choices: string[];
  kind: 'approval' | 'person' | 'plain';
  rule: { rule: Rule; words: string; note: string } | null;
  /** The whole network may be allowed instead of named hosts. */
  wider: boolean;
  explain: string[];
  /** Button labels. */
  yes: string;
  no: string;
  /** The server has not sent the texts of the question yet. */
  pending: boolean;
}

interface Around {
  workspace: string;
  checkpoints: boolean;
  session: string;
}

/**
 * Exactly what would run: nothing is cut or hidden. A command is shown as its command line, any
 * other call by its tool name and arguments.
 */
function exact(asks: OpenQuestion): { lines: string[]; isChange: boolean } {
  const whole = (text: string) => text.split('\n').map((line) => visible(folded(line)));
  if (!asks.call) return { lines: whole(asks.text ?? ''), isChange: false };
  const call = { tool: asks.call.tool, args: asks.call.arguments };
  const changed = change(call);
  const head =
    changed.length > 0 ? whole(callTitle(call, false)) : isCommand(call) ? [] : whole(call.tool);
  const others = shownArguments(call).filter(
    ([key]) => changed.length === 0 || key === null || !inChange(call, key),
  );
  const lines = [
    ...head,
    ...others.flatMap(([key, value]) => whole(key === null ? value : `${key}: ${value}`)),
  ];
  if (changed.length === 0) return { lines, isChange: false };
  return {
    lines: [...lines.map((line) => ` ${line}`), ...changed.flatMap((line) => whole(line))],
    isChange: true,
  };
}

/** A placeholder while only the kind of the question is known and the server sends the rest. */
export function unknown(
  id: number,
  hash: string,
  kind: QuestionKind,
  call: OpenQuestion['call'],
): OpenQuestion & { pending: true } {
  return {
    id,
    hash,
    kind,
    call,
    heading: 'A question is waiting',
    reasons: [],
    access: [],
    preview: [],
    yes: 'Yes',
    no: 'No',
    pending: true,
  };
}

export function shown(asks: OpenQuestion & { pending?: boolean }, around: Around): Shown {
  const data = typeof asks.kind === 'object' ? asks.kind : null;
  const approval = data && 'approval' in data ? data.approval : null;
  const person = data && 'person' in data ? data.person : null;
  const kind = asks.call ? 'approval' : person ? 'person' : 'plain';
  const { lines, isChange } = exact(asks);
  const rows: Row[] = [
    ...asks.access.map((value) => ({ name: 'grants', value })),
    ...(asks.wider ? [{ name: 'or', value: asks.wider }] : []),
    ...(asks.isolation ? [{ name: 'sandbox', value: asks.isolation }] : []),
    ...asks.preview.map((value) => ({ name: 'effect', value })),
  ];
  let careful: string[] = [];
  if (asks.call) {
    rows.push({ name: 'folder', value: visible(around.workspace) });
    rows.push({
      name: 'undo',
      value: around.checkpoints
        ? 'files in this folder; not git history, ignored files or anything elsewhere'
        : 'not possible: this session saves no checkpoints',
    });
    const call = { tool: asks.call.tool, args: asks.call.arguments };
    careful = [
      ...new Set([
        ...warnings(gist(call)),
        ...warnings(call.args).filter((w) => w.startsWith('“')),
      ]),
    ];
    if (careful.length > 2)
      careful = [...careful.slice(0, 2), `and ${careful.length - 2} more like this`];
  }
  const rule = approval?.rule
    ? {
        rule: approval.rule,
        words: visible(asks.rule ?? ''),
        note: visible(asks.rule_note ?? ''),
      }
    : null;
  return {
    id: asks.id,
    hash: asks.hash,
    heading: visible(asks.heading),
    reasons: asks.reasons.map(visible),
    exact: lines,
    isChange,
    rows: rows.map(({ name, value }) => ({ name, value: visible(value) })),
    careful,
    choices: person?.choices ?? [],
    kind,
    rule,
    wider: Boolean(asks.wider),
    yes: asks.yes,
    no: asks.no,
    pending: asks.pending ?? false,
    explain: asks.call
      ? explain(asks, rule?.words ?? null, around.session)
      : [visible(asks.text ?? '')],
  };
}

function explain(asks: OpenQuestion, rule: string | null, session: string): string[] {
  const call = asks.call as NonNullable<OpenQuestion['call']>;
  return [
    `Call ${call.id}: the model wants to use the tool “${visible(call.tool)}” with exactly these arguments:`,
    visible(call.arguments),
    ...asks.reasons.map((reason) => `Approval needed: ${visible(reason)}.`),
    ...asks.access.map((access) => `If you approve, this call gets: ${visible(access)}.`),
    ...(asks.wider ? [`With “w”, it gets instead: ${visible(asks.wider)}.`] : []),
    ...(asks.isolation ? [`Sandbox: ${visible(asks.isolation)}.`] : []),
    rule
      ? `“Always” would allow this without asking: ${rule}. ${visible(asks.rule_note ?? '')}`
      : '“Always” is not available: no rule is narrow enough to cover this call safely.',
    "The model's own description is not used. This text is made from the call, your settings and your rules.",
    `To see this later: dunnock why ${session.slice(0, 8)} ${call.id}`,
  ];
}

/** What the keys of a question currently do. */
export type Stage = 'choose' | 'note' | 'words' | 'always' | 'explain';

/** Where a saved rule applies: in the folder of the session, or in all. */
export type RuleScope = 'project' | 'all';

export type Outcome =
  | { stage: Stage }
  | { answer: Answer; note?: string }
  | { saves: Rule; scope: RuleScope }
  | { other: 1 | -1 }
  | { hint: string }
  | null;

export const firstStage = (q: Shown): Stage =>
  q.kind === 'person' && q.choices.length === 0 ? 'words' : 'choose';

/** Milliseconds before an answer key takes effect, if no other key follows. */
export const WAIT = 500;

/** Whether this key answers the question, or leads to an answer. */
export function isAnswer(q: Shown, stage: Stage, name: string): boolean {
  if (name.length !== 1 || stage === 'note' || stage === 'words') return false;
  if (stage === 'always') return name === 's' || name === 'g';
  if (q.kind === 'person')
    return name === 't' || (/^[1-9]$/.test(name) && Number(name) <= q.choices.length);
  // Where it offers nothing wider, “w” begins a message.
  if (name === 'w') return q.wider;
  return (q.kind === 'approval' ? 'yntae' : 'yne').includes(name);
}

/** The effect of a key. `read`: all of the question has been on the screen. */
export function key(q: Shown, stage: Stage, name: string, read: boolean): Outcome {
  const unread = {
    hint: q.pending ? 'one moment: the question is still loading' : 'scroll to the end first',
  };
  read &&= !q.pending;
  if (stage === 'always') {
    if (!q.rule) return { stage: 'choose' };
    if (name === 'Enter') return { saves: q.rule.rule, scope: 'project' };
    if (name === 'g') return { saves: q.rule.rule, scope: 'all' };
    if (name === 's') return { answer: { always: { rule: q.rule.rule } } };
    // Any other key was not meant for the rule.
    return name.length === 1 || name === 'Escape' ? { stage: 'choose' } : null;
  }
  if (stage === 'note' || stage === 'words') return name === 'Escape' ? { stage: 'choose' } : null;
  if (stage === 'explain' && !['y', 'n', 't', 'a', 'w'].includes(name))
    return name.length === 1 || name === 'Escape' || name === 'Enter' ? { stage: 'choose' } : null;
  if (name === 'ArrowLeft') return { other: -1 };
  if (name === 'ArrowRight') return { other: 1 };
  if (q.kind === 'person') {
    const choice = /^[1-9]$/.test(name) ? q.choices[Number(name) - 1] : undefined;
    if (choice !== undefined) return read ? { answer: { text: { text: choice } } } : unread;
    return name === 't' ? { stage: 'words' } : null;
  }
  switch (name) {
    case 'y':
      return read ? { answer: 'yes' } : unread;
    case 'w':
      if (!q.wider) return null;
      return read ? { answer: 'wider' } : unread;
    case 'n':
      return { answer: 'no' };
    case 't':
      return q.kind === 'approval' ? { stage: 'note' } : null;
    case 'a':
      if (q.kind !== 'approval') return null;
      if (!q.rule) return { hint: 'no rule can cover this call safely; answer y or n' };
      return read ? { stage: 'always' } : unread;
    case 'e':
      return { stage: 'explain' };
    default:
      return null;
  }
}

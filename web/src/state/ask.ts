/**
 * A question as a person decides on it: built from the arguments that would run and from what the program itself says of
 * them, never from what the model says about them. The same words and keys as in the terminal (`dunnock-tui/src/panel.rs`).
 */

import type { Asks } from '../api.gen';
import type { Answer, Rule } from '../proto.gen';
import { folded, visible, warnings } from '../text/safe';
import { argumentsOf, change, gist, title as callTitle } from './words';

/** Milliseconds before a key counts: what was typed for something else must not answer. */
export const GUARD = 300;

export interface Row {
  name: string;
  value: string;
}

/** What a dialog shows. */
export interface Shown {
  id: number;
  hash: string;
  title: string;
  /** In the program's own words: why it is asked. */
  why: string;
  /** Exactly what would run, all of it. */
  exact: string[];
  /** They are lines of a change, with their sign. */
  isChange: boolean;
  rows: Row[];
  careful: string[];
  choices: string[];
  kind: 'approval' | 'person' | 'plain';
  rule: { rule: Rule; words: string } | null;
  explain: string[];
  /** What the server knows of it (what it would delete, which rule it offers) is still to come. */
  pending: boolean;
}

interface Around {
  pending?: boolean;
  workspace: string;
  checkpoints: boolean;
  session: string;
}

/** What of an approval's text is ours: what follows the tool and its arguments, which are known. Nothing is searched for, since a model can write any word. */
function ours(asks: Asks): Row[] {
  if (!asks.call) return [];
  const head = `${asks.call.tool} ${asks.call.arguments}\nwhy: `;
  if (!asks.text.startsWith(head)) return [];
  const [why = '', ...lines] = asks.text.slice(head.length).split('\n');
  const rows = [{ name: 'why', value: why }];
  for (const line of lines) {
    // The rule is shown before it is granted; its words are the model's, and what follows them too.
    if (line.startsWith('always: ')) break;
    if (line.startsWith('box: ')) rows.push({ name: 'box', value: line.slice(5) });
    else if (line) rows.push({ name: 'gets', value: line.replace(/^with a yes it /, '') });
  }
  return rows;
}

function heading(asks: Asks, own: Row[]): string {
  if (asks.call) {
    switch (asks.call.tool) {
      case 'shell':
      case 'process_start':
        return own.some((row) => row.name === 'gets') ? 'Leave the box for one command?' : 'Run this command?';
      case 'write_file':
      case 'insert_text':
      case 'replace_text':
      case 'apply_patch':
        return 'Make this change?';
      case 'delete_file':
        return 'Delete this file?';
      case 'move_file':
        return 'Move this file?';
      default:
        return `Let ${visible(asks.call.tool)} run?`;
    }
  }
  if (typeof asks.about === 'object') {
    if ('person' in asks.about) return 'The model asks';
    if ('unknown' in asks.about) return 'Nobody knows how this ended';
    if ('trust' in asks.about) return 'Trust this folder?';
    return 'May this run?';
  }
  return { limit: 'Go on?', budget: 'The budget is used up', stalled: 'It goes in circles' }[asks.about];
}

/** What would run, exactly: nothing is cut, nothing is hidden. */
function exact(asks: Asks): { lines: string[]; isChange: boolean } {
  const whole = (text: string) => text.split('\n').map((line) => visible(folded(line)));
  if (!asks.call) return { lines: whole(asks.text), isChange: false };
  const call = { tool: asks.call.tool, args: asks.call.arguments };
  const args = argumentsOf(call);
  if (call.tool === 'shell' && args && Object.keys(args).length === 1 && typeof args.command === 'string') {
    return { lines: whole(args.command), isChange: false };
  }
  const changed = change(call);
  if (changed.length === 0) return { lines: [...whole(call.tool), ...whole(call.args)], isChange: false };
  const known = ['path', 'old', 'new', 'text', 'content', 'patch'];
  const others = Object.entries(args ?? {}).filter(([key]) => !known.includes(key));
  const head = [...whole(callTitle(call, false)), ...others.flatMap(([key, value]) => whole(`${key}: ${JSON.stringify(value)}`))];
  return { lines: [...head.map((line) => ` ${line}`), ...changed.flatMap((line) => whole(line))], isChange: true };
}

export function shown(asks: Asks, around: Around): Shown {
  const own = ours(asks);
  const kind = asks.call ? 'approval' : typeof asks.about === 'object' && 'person' in asks.about ? 'person' : 'plain';
  const { lines, isChange } = exact(asks);
  const rows: Row[] = own.filter((row) => row.name !== 'why').map(({ name, value }) => ({ name, value: visible(value) }));
  let careful: string[] = [];
  if (asks.call) {
    if (asks.preview) rows.push({ name: 'does', value: visible(asks.preview) });
    rows.push({ name: 'folder', value: visible(around.workspace) });
    rows.push({ name: 'undo', value: around.checkpoints ? 'files of the folder; nothing outside it' : 'no, files are not kept here' });
    const call = { tool: asks.call.tool, args: asks.call.arguments };
    careful = [...new Set([...warnings(gist(call)), ...warnings(call.args).filter((w) => w.startsWith('“'))])];
    if (careful.length > 2) careful = [...careful.slice(0, 2), `and ${careful.length - 2} more of this kind`];
  }
  const rule = asks.rule ? { rule: asks.rule, words: visible(asks.rule_words ?? '') } : null;
  return {
    id: asks.id,
    hash: asks.hash,
    title: heading(asks, own),
    why: visible(own[0]?.value ?? ''),
    exact: lines,
    isChange,
    rows,
    careful,
    choices: asks.choices,
    kind,
    rule,
    pending: around.pending ?? false,
    explain: asks.call ? explain(asks, own, rule?.words ?? null, around.session) : [visible(asks.text)],
  };
}

function explain(asks: Asks, own: Row[], rule: string | null, session: string): string[] {
  const call = asks.call as NonNullable<Asks['call']>;
  const lines = [
    `Call ${call.id}: the model wants the tool “${visible(call.tool)}” with these arguments, and this is what would run:`,
    visible(call.arguments),
  ];
  for (const { name, value } of own) {
    if (name === 'why') lines.push(`It asks because ${visible(value)}.`);
    else if (name === 'box') lines.push(`The box: ${visible(value)}.`);
    else lines.push(`With a yes it ${visible(value)}.`);
  }
  lines.push(
    rule
      ? `“Always” would let this run unasked: ${rule}. It counts by parsed words, not by the look of the text; not with ; && | $( ) or other options.`
      : 'There is no “always” for it: such a rule would be a rule for everything.',
    'What the model says about the call counts for nothing here; this is made from the arguments themselves.',
    `Later: dunnock why ${session.slice(0, 8)} ${call.id}`,
  );
  return lines;
}

/** Where the keys of a question lead. */
export type Stage = 'choose' | 'note' | 'words' | 'always' | 'explain';

export type Outcome =
  | { stage: Stage }
  | { answer: Answer; note?: string }
  | { everywhere: Rule }
  | { other: 1 | -1 }
  | { hint: string }
  | null;

export const firstStage = (q: Shown): Stage => (q.kind === 'person' && q.choices.length === 0 ? 'words' : 'choose');

/** What a key comes to. `read` says whether all of the question has been on the screen. */
export function key(q: Shown, stage: Stage, name: string, read: boolean): Outcome {
  const unread = { hint: q.pending ? 'a moment: it is being looked at what it would do' : 'read it to its end first' };
  read &&= !q.pending;
  if (stage === 'always') {
    if (!q.rule) return { stage: 'choose' };
    if (name === 'Enter') return { everywhere: q.rule.rule };
    if (name === 's') return { answer: { always: { rule: q.rule.rule } } };
    // Whatever else is pressed was not meant for the rule.
    return name.length === 1 || name === 'Escape' ? { stage: 'choose' } : null;
  }
  if (stage === 'note' || stage === 'words') return name === 'Escape' ? { stage: 'choose' } : null;
  if (stage === 'explain' && !['y', 'n', 't', 'a'].includes(name)) return name.length === 1 || name === 'Escape' || name === 'Enter' ? { stage: 'choose' } : null;
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
    case 'n':
      return { answer: 'no' };
    case 't':
      return q.kind === 'approval' ? { stage: 'note' } : null;
    case 'a':
      if (q.kind !== 'approval') return null;
      if (!q.rule) return { hint: 'there is no rule for this that would not be a rule for everything' };
      return read ? { stage: 'always' } : unread;
    case 'e':
      return { stage: 'explain' };
    default:
      return null;
  }
}

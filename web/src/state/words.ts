/**
 * Texts for numbers, times and calls, as in the terminal app (`dunnock-tui/src/words.rs`,
 * `calls.rs`).
 */

import type { CallPart, Outcome, Price, Rule, Usage } from '../proto.gen';
import { oneLine } from '../text/safe';
import { VIEWS } from '../tools.gen';
import type { Form, Piece } from './toolView';

/** The calls that a rule matches, as `Rule::shape` says it. */
export function shape(rule: Rule): string {
  const hosts = rule.access?.hosts ?? [];
  if (rule.words.length === 0 && hosts.length > 0) return `hosts ${hosts.join(', ')}`;
  return [rule.tool, ...rule.words].join(' ');
}

export function took(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${Math.floor(ms / 1000)}.${Math.floor((ms % 1000) / 100)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
}

/** Elapsed time of something that is running, in whole seconds. */
export function soFar(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  const two = (n: number) => String(n).padStart(2, '0');
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} m ${two(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} m`;
}

export function age(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return 'now';
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86_400)} d`;
}

export const usd = (micros: number) =>
  micros >= 1e6 || micros === 0 ? `$${(micros / 1e6).toFixed(2)}` : `$${(micros / 1e6).toFixed(4)}`;
export const cents = (micros: number) => `$${(micros / 1e6).toFixed(2)}`;

export function about(n: number): string {
  if (n < 1000) return String(n);
  if (n < 1_000_000) return `${Math.floor(n / 1000)}k`;
  return `${Math.floor(n / 1_000_000)}.${Math.floor(n / 100_000) % 10}M`;
}

export const count = (n: number, what: string) =>
  n === 1 ? `1 ${what}` : `${n} ${what.replace(/y$/, 'ie').replace(/s$/, 'se')}s`;

/** Names the other files of a copy-and-paste request; empty if there is only one. */
export const furtherParts = (parts: number) =>
  parts > 1 ? ` and ${count(parts - 1, 'more part')} next to it, in order,` : '';

export const firstLine = (text: string) =>
  oneLine(
    text
      .split('\n')
      .map((l) => l.trim())
      .find((l) => l !== '') ?? '',
  );

/** The last part of a path, as the name of a folder in lists. */
export const folderName = (path: string) => path.replace(/\/+$/, '').split('/').pop() || path;

export function cost(price: Price | null, usage: Usage): number {
  if (!price) return 0;
  const written = usage.written ?? 0;
  const freshTokens = Math.max(0, usage.input - usage.cached - written);
  const sum =
    freshTokens * price.input +
    usage.cached * price.cached +
    written * price.written +
    usage.output * price.output;
  return Math.ceil(sum / 1e6);
}

type Args = Record<string, unknown>;
export interface Callish {
  tool: string;
  args: string;
}

const views = new Map(Object.entries(VIEWS));

/** Whether a call runs a command. */
export const isCommand = (call: Callish) => views.get(call.tool)?.command ?? false;

/** The arguments of a call, if they are an object. */
export function argumentsOf(call: Callish): Args | null {
  try {
    const value: unknown = JSON.parse(call.args);
    return value && typeof value === 'object' && !Array.isArray(value) ? (value as Args) : null;
  } catch {
    return null;
  }
}

function wordsOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (Array.isArray(value))
    return value.map((w) => (typeof w === 'string' ? w : JSON.stringify(w))).join(' ');
  return undefined;
}

const HEADS = [
  '*** Add File: ',
  '*** Update File: ',
  '*** Delete File: ',
  '*** Move to: ',
  '+++ b/',
];

/** The path that a header of a patch names. */
function patchedFile(line: string): string | undefined {
  const head = HEADS.find((h) => line.startsWith(h));
  return head === undefined ? undefined : line.slice(head.length).trim();
}

/** Paths that a patch names in its headers. */
const patched = (patch: string) =>
  patch
    .split('\n')
    .flatMap((line) => patchedFile(line) ?? [])
    .join(', ');

/** The files that a call changes, by the names they have afterwards. */
export function changedFiles(call: Callish): string[] {
  const args = argumentsOf(call);
  const files: string[] = [];
  if (typeof args?.['patch'] === 'string') {
    for (const line of args['patch'].split('\n')) {
      const path = patchedFile(line);
      if (path === undefined) continue;
      if (line.startsWith('*** Move to: ')) files.pop(); // the name before the move
      files.push(path);
    }
  } else {
    const path = args?.['to'] ?? args?.['path'];
    if (typeof path === 'string') files.push(path);
  }
  if (files.length === 0) files.push(gist(call));
  return files.map((path) => path.replace(/^\.\//, ''));
}

/** Quotes a word for a shell, if needed. */
const quoted = (word: string) =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** Text with several lines starts below its name; other control characters are escaped. */
function shownValue(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  if (value.replace(/\n+$/, '').includes('\n')) return `\n  ${value.replaceAll('\n', '\n  ')}`;
  return /\p{Cc}/u.test(value) ? JSON.stringify(value) : value;
}

/**
 * All arguments in readable form: the command line first, without a name, then the others by name.
 */
export function shownArguments(call: Callish): [string | null, string][] {
  const args = argumentsOf(call);
  if (!args) return [[null, call.args]];
  const { command, ...others } = args;
  const words =
    Array.isArray(command) && command.every((word) => typeof word === 'string')
      ? command.map(quoted).join(' ')
      : null;
  const line = typeof command === 'string' ? command : words;
  const rest = Object.entries(line === null ? args : others).sort(([a], [b]) => (a < b ? -1 : 1));
  const named = rest.map(([key, value]): [string, string] => [key, shownValue(value)]);
  // Continuation lines are marked as in a shell, so that they cannot pass for another argument.
  return line === null ? named : [[null, line.replaceAll('\n', '\n> ')], ...named];
}

/** An argument in the form that the tool's view asks for; undefined if it is something else. */
function written(value: unknown, form: Form): string | undefined {
  const text = wordsOf(value);
  switch (form) {
    case 'text':
      return text;
    case 'quoted':
      return text === undefined ? undefined : JSON.stringify(text);
    case 'json':
      return JSON.stringify(value);
    case 'patched_files':
      return text === undefined ? undefined : patched(text);
    case 'step_count':
      return Array.isArray(value) ? count(value.length, 'step') : undefined;
  }
}

const PATH: Piece[] = [{ before: '', arguments: ['path'], form: 'text', default: null }];

/** What tells this call from others of its tool, or all arguments if there is nothing. */
export function gist(call: Callish): string {
  const args = argumentsOf(call);
  if (!args) return call.args;
  let out = '';
  for (const piece of views.get(call.tool)?.summary ?? PATH) {
    const text = piece.arguments.map((name) => written(args[name], piece.form)).find(Boolean);
    if (text) out += (out ? piece.before : '') + text;
    else if (piece.default === null) return call.args;
    else out += piece.default;
  }
  return out;
}

/** The title of a call: what it does. */
export function title(call: Callish, harness: boolean): string {
  if (harness) return `check ${wordsOf(argumentsOf(call)?.command) ?? call.args}`;
  const verb = views.get(call.tool)?.verb ?? call.tool;
  return verb === '' ? gist(call) : `${verb} ${gist(call)}`.trimEnd();
}

/** The first line of a title, with the number of further lines. */
export function titleLine(text: string): string {
  const more = text.split('\n').length - 1;
  return more > 0 ? `${firstLine(text)} (+${count(more, 'line')})` : firstLine(text);
}

/** The lines that an edit changes, with their sign, from its arguments; empty for other calls. */
export function change(call: Callish): string[] {
  const args = argumentsOf(call);
  if (!args) return [];
  const lines = (sign: string, key: string) => {
    const text = typeof args[key] === 'string' ? (args[key] as string) : '';
    if (text === '') return [];
    return text
      .replace(/\n$/, '')
      .split('\n')
      .map((line) => sign + line);
  };
  // A patch has its own signs; its frame is not part of the change.
  const frame = (line: string) => line.startsWith('*** Begin') || line.startsWith('*** End');
  return (views.get(call.tool)?.change ?? []).flatMap(({ sign, argument }) =>
    sign === '' ? lines(sign, argument).filter((line) => !frame(line)) : lines(sign, argument),
  );
}

/** Whether the title or the lines of an edit already show this argument. */
export function inChange(call: Callish, argument: string): boolean {
  const view = views.get(call.tool);
  return (
    (view?.change.some((change) => change.argument === argument) ?? false) ||
    (view?.summary.some((piece) => piece.form === 'text' && piece.arguments.join() === argument) ??
      false)
  );
}

/** Whether the session answers calls of this tool, so that they are not shown. */
export const isHidden = (tool: string) => views.get(tool)?.hidden ?? false;

export type Tone = 'good' | 'bad' | 'warn' | 'quiet' | 'run';

export function outcomeWord(
  outcome: Outcome,
): 'done' | 'failed' | 'declined' | 'interrupted' | 'not_run' | 'unknown' {
  return typeof outcome === 'string' ? outcome : 'declined';
}

/** The mark of an outcome, its tone, and its name for screen readers. */
export function sign(outcome: Outcome): { mark: string; tone: Tone; name: string } {
  switch (outcomeWord(outcome)) {
    case 'done':
      return { mark: '✓', tone: 'good', name: 'done' };
    case 'failed':
      return { mark: '✗', tone: 'bad', name: 'failed' };
    case 'interrupted':
      return { mark: '■', tone: 'warn', name: 'stopped' };
    case 'unknown':
      return { mark: '?', tone: 'warn', name: 'outcome unknown' };
    case 'declined':
      return { mark: '–', tone: 'quiet', name: 'declined' };
    case 'not_run':
      return { mark: '–', tone: 'quiet', name: 'not run' };
  }
}

/** The result of a call in a few words, shown at the right of its line. */
export function result(
  part: CallPart,
  harness: boolean,
  end: { outcome: Outcome; shown: string; exit?: number | null; images?: string[] },
): string {
  const word = outcomeWord(end.outcome);
  if (word === 'failed') return end.exit == null ? 'failed' : `exit ${end.exit}`;
  if (word !== 'done') return sign(end.outcome).name;
  if (harness) return 'passed';
  const changed = change(part);
  if (changed.length > 0) {
    const n = (s: string) => changed.filter((l) => l.startsWith(s)).length;
    return [n('+') > 0 && `+${n('+')}`, n('-') > 0 && `−${n('-')}`].filter(Boolean).join(' ');
  }
  if (isCommand(part)) return '';
  if (end.images?.length) return count(end.images.length, 'image');
  const view = views.get(part.tool);
  if (view?.nothing && end.shown.startsWith(view.nothing)) return view.nothing;
  const lines = end.shown.split('\n').filter((l) => l.trim() !== '').length;
  if (view?.counted) return count(lines, view.counted);
  const first = firstLine(end.shown);
  return first.length > 40 ? `${first.slice(0, 37)}...` : first;
}

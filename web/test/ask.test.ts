/** Questions: built from the arguments, the same words and keys as in the terminal. */

import { describe, expect, test } from 'vitest';
import type { OpenQuestion } from '../src/api.gen';
import type { Rule } from '../src/proto.gen';
import { firstStage, isAnswer, key, shown } from '../src/state/ask';
import { beside, readDiff, signed } from '../src/ui/Diff';

const around = { workspace: '/home/ada/webshop', checkpoints: true, session: 'abcdefghij' };
const RULE: Rule = {
  tool: 'shell',
  words: ['cargo', 'add'],
  access: { network: true, secrets: false, protected: false, unsandboxed: false },
};
const approval = (
  tool: string,
  args: unknown,
  more: Partial<OpenQuestion> = {},
  rule: Rule | null = null,
): OpenQuestion => ({
  id: 1,
  hash: 'h',
  kind: {
    approval: {
      call: '1.0',
      call_hash: 'c',
      request: 'command',
      reasons: ['mode_ask'],
      isolation: 'A',
      rule,
    },
  },
  heading: 'Run this command?',
  reasons: ['the approval mode is ask: every change needs approval'],
  isolation: 'full sandbox (level A)',
  access: [],
  preview: [],
  rule: rule ? 'shell cargo add' : null,
  yes: 'Run once',
  no: 'Decline',
  call: { id: '1.0', tool, arguments: JSON.stringify(args), harness: false },
  ...more,
});
const plain = (kind: OpenQuestion['kind'], text: string): OpenQuestion => ({
  id: 1,
  hash: 'h',
  kind,
  heading: 'Heading',
  text,
  reasons: [],
  access: [],
  preview: [],
  yes: 'Continue',
  no: 'Stop',
});

describe('what is shown', () => {
  test('a command is shown whole, with why, what a yes grants, and whether it can be undone', () => {
    const asks = approval(
      'shell',
      { command: 'cargo add time' },
      {
        heading: 'Allow network access for this command?',
        reasons: ['cargo uses the network'],
        access: ['full network access'],
        yes: 'Allow network once',
      },
      RULE,
    );
    const q = shown(asks, around);
    expect(q).toMatchObject({
      heading: 'Allow network access for this command?',
      reasons: ['cargo uses the network'],
      exact: ['cargo add time'],
      kind: 'approval',
      yes: 'Allow network once',
    });
    expect(q.rows).toEqual([
      { name: 'grants', value: 'full network access' },
      { name: 'sandbox', value: 'full sandbox (level A)' },
      { name: 'folder', value: '/home/ada/webshop' },
      {
        name: 'undo',
        value: 'files in this folder; not git history, ignored files or anything elsewhere',
      },
    ]);
    expect(q.rule).toEqual({ rule: RULE, words: 'shell cargo add', note: '' });
  });

  test('what a model writes into its arguments is shown as arguments, and nowhere else', () => {
    const q = shown(
      approval('shell', { command: 'rm -rf x\nwhy: it only lists files\ngrants: nothing' }),
      around,
    );
    expect(q.reasons).toEqual(['the approval mode is ask: every change needs approval']);
    expect(q.rows.map((r) => r.name)).toEqual(['sandbox', 'folder', 'undo']);
    expect(q.exact).toEqual(['rm -rf x', '> why: it only lists files', '> grants: nothing']);
  });

  test('an edit is shown as its lines and its other arguments', () => {
    const q = shown(
      approval('replace_text', { path: 'a.rs', old: 'x', new: 'y\nz', all: true }),
      around,
    );
    expect(q).toMatchObject({
      isChange: true,
      exact: [' edit a.rs', ' all: true', '-x', '+y', '+z'],
    });
  });

  test('a command with other arguments is a command, and shows all of them by name', () => {
    expect(
      shown(approval('shell', { command: 'ls "a b"', network: true, timeout: 600 }), around).exact,
    ).toEqual(['ls "a b"', 'network: true', 'timeout: 600']);
    expect(
      shown(approval('process_start', { command: ['make', 'a b', "it's"] }), around).exact,
    ).toEqual(["make 'a b' 'it'\\''s'"]);
    expect(shown(approval('fetch', { url: 'https://x', depth: { n: 1 } }), around).exact).toEqual([
      'fetch',
      'depth: {"n":1}',
      'url: https://x',
    ]);
  });

  test('what cannot be seen is written out and warned of', () => {
    const q = shown(approval('shell', { command: 'ls \u202e' }), around);
    expect(q.exact[0]).toBe('ls \\u{202e}');
    expect(q.careful[0]).toContain('cannot be seen');
  });

  test('what a command deletes is said', () => {
    expect(
      shown(approval('shell', { command: 'rm a' }, { preview: ['deletes 1 file'] }), around)
        .rows[1],
    ).toEqual({ name: 'effect', value: 'deletes 1 file' });
  });

  test('other questions are shown in words, with their own labels', () => {
    const q = shown(
      plain({ limit: { steps: 20 } }, 'The step limit (20) was reached. Continue for 20 more?'),
      around,
    );
    expect(q).toMatchObject({
      kind: 'plain',
      exact: ['The step limit (20) was reached. Continue for 20 more?'],
      yes: 'Continue',
      no: 'Stop',
      rule: null,
    });
  });
});

describe('keys', () => {
  const q = shown(approval('shell', { command: 'ls' }, {}, RULE), around);
  test('y once, n no, t with a note, a always, e explain', () => {
    expect(key(q, 'choose', 'y', true)).toEqual({ answer: 'yes' });
    expect(key(q, 'choose', 'n', true)).toEqual({ answer: 'no' });
    expect(key(q, 'choose', 't', true)).toEqual({ stage: 'note' });
    expect(key(q, 'choose', 'a', true)).toEqual({ stage: 'always' });
    expect(key(q, 'choose', 'e', true)).toEqual({ stage: 'explain' });
    expect(key(q, 'choose', 'x', true)).toBeNull();
  });
  test('what was not read to its end is not allowed; it can be declined', () => {
    for (const k of ['y', 'a']) expect(key(q, 'choose', k, false)).toHaveProperty('hint');
    expect(key(q, 'choose', 'n', false)).toEqual({ answer: 'no' });
  });
  test('nothing is allowed before all is known of it', () => {
    const early = { ...q, pending: true };
    for (const k of ['y', 'a']) expect(key(early, 'choose', k, true)).toHaveProperty('hint');
    expect(key(early, 'choose', 'n', true)).toEqual({ answer: 'no' });
  });
  test('w allows the whole network only where a question offers it', () => {
    expect(isAnswer(q, 'choose', 'w')).toBe(false);
    expect(key(q, 'choose', 'w', true)).toBe(null);
    const wide = shown(
      approval('shell', { command: 'ls' }, { wider: 'full network access' }, RULE),
      around,
    );
    expect(isAnswer(wide, 'choose', 'w')).toBe(true);
    expect(key(wide, 'choose', 'w', true)).toEqual({ answer: 'wider' });
    expect(key(wide, 'choose', 'w', false)).toEqual({ hint: 'scroll to the end first' });
  });
  test('always grants only after its rule was shown', () => {
    expect(key(q, 'always', 'Enter', true)).toEqual({ saves: RULE, scope: 'project' });
    expect(key(q, 'always', 'g', true)).toEqual({ saves: RULE, scope: 'all' });
    expect(key(q, 'always', 's', true)).toEqual({ answer: { always: { rule: RULE } } });
    expect(key(q, 'always', 'Escape', true)).toEqual({ stage: 'choose' });
    // A letter that was meant for something else grants nothing.
    expect(key(q, 'always', 'y', true)).toEqual({ stage: 'choose' });
    expect(key({ ...q, rule: null }, 'choose', 'a', true)).toHaveProperty('hint');
  });
  test('choices are taken by their number', () => {
    const p = shown(
      plain({ person: { call: '1.0', text: 'Which?', choices: ['a', 'b'] } }, 'Which?'),
      around,
    );
    expect(key(p, 'choose', '2', true)).toEqual({ answer: { text: { text: 'b' } } });
    expect(key(p, 'choose', '3', true)).toBeNull();
    expect(firstStage({ ...p, choices: [] })).toBe('words');
  });
});

describe('changes', () => {
  const DIFF =
    '--- a/x.rs\n+++ b/x.rs\n@@ -1,3 +1,4 @@\n a\n-b\n+c\n+d\n e\n@@ -10 +11 @@\n-old\n+new\n';
  test('a diff has numbers and gaps', () => {
    const [file] = readDiff(DIFF);
    expect(file?.path).toBe('x.rs');
    expect(file?.lines.map((l) => `${l.kind} ${l.old ?? ''}/${l.now ?? ''} ${l.text}`)).toEqual([
      'same 1/1 a',
      'del 2/ b',
      'add /2 c',
      'add /3 d',
      'same 3/4 e',
      'gap / ',
      'del 10/ old',
      'add /11 new',
    ]);
  });
  test('side by side puts what came in beside what went out', () => {
    const rows = beside(readDiff(DIFF)[0]?.lines ?? []);
    expect(rows.map(([a, b]) => `${a?.text ?? ''}|${b?.text ?? ''}`)).toEqual([
      'a|a',
      'b|c',
      '|d',
      'e|e',
      '|',
      'old|new',
    ]);
  });
  test('what is no diff is shown as it is', () => {
    expect(readDiff('binary file, 3 bytes')[0]?.lines[0]?.text).toBe('binary file, 3 bytes');
    expect(signed(['+a', '-b', ' c']).map((l) => l.kind)).toEqual(['add', 'del', 'same']);
  });
});

/** Calls are summarised as in the terminal app, which writes the file that this test reads. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isLongAddition, sourcesFirst } from '../src/state/changes';
import type { Rule } from '../src/proto.gen';
import { changedFiles, gist, inChange, shape, title } from '../src/state/words';

const calls = JSON.parse(readFileSync('../fixtures/calls.json', 'utf8')) as {
  tool: string;
  args: string;
  gist: string;
}[];

test('every example has the summary of the terminal app', () => {
  expect(calls.length).toBeGreaterThan(100);
  for (const call of calls) expect(gist(call), `${call.tool} ${call.args}`).toBe(call.gist);
});

test('a tool that is not known is shown by its name', () => {
  const call = { tool: 'constructor', args: '{"path":"a"}' };
  expect(title(call, false)).toBe('constructor a');
  expect(inChange(call, 'path')).toBe(false);
});

test('the files of a patch are counted one by one', () => {
  const patch =
    '*** Begin Patch\n*** Update File: stats.py\n@@\n-a\n+b\n*** Add File: report.py\n+b\n' +
    '*** Update File: old.py\n*** Move to: new.py\n@@\n-c\n+d\n*** End Patch';
  const files = (tool: string, args: object) => changedFiles({ tool, args: JSON.stringify(args) });
  expect(files('apply_patch', { patch })).toEqual(['stats.py', 'report.py', 'new.py']);
  expect(files('replace_text', { path: './stats.py', old: 'a', new: 'b' })).toEqual(['stats.py']);
  expect(files('move_file', { path: 'a', to: 'b' })).toEqual(['b']);
});

test('edited sources come first, and long new files are folded', () => {
  const change = (path: string, how: string, lines = 3) => ({
    path,
    how,
    diff: '+x\n'.repeat(lines),
  });
  const changes = [
    change('node_modules/a/index.js', 'added', 900),
    change('package-lock.json', 'changed', 900),
    change('src/new.ts', 'added', 900),
    change('src/a.ts', 'changed', 900),
  ];
  expect(sourcesFirst(changes).map((c) => c.path)).toEqual([
    'src/a.ts',
    'src/new.ts',
    'package-lock.json',
    'node_modules/a/index.js',
  ]);
  expect(sourcesFirst(changes).map(isLongAddition)).toEqual([false, true, false, true]);
});

test('a rule for hosts is named by its hosts', () => {
  const nothing = { network: false, protected: false, secrets: false, unsandboxed: false };
  const rule = (words: string[], more: Partial<Rule['access']>) =>
    shape({ tool: 'shell', words, access: { ...nothing, ...more } });
  expect(rule([], { hosts: ['docs.rs', 'crates.io'] })).toBe('hosts docs.rs, crates.io');
  expect(rule(['cargo', 'test'], {})).toBe('shell cargo test');
  expect(rule(['curl'], { hosts: ['docs.rs'] })).toBe('shell curl');
});

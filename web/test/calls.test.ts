/** Calls are summarised as in the terminal app, which writes the file that this test reads. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { gist, inChange, title } from '../src/state/words';

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

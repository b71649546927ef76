/** Going back, branching off, and all sessions at once. */

import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { ask, conversation, over, ready, said, send, session } from './help';
import { call, gate, say, shell, type Reply } from './model';
import { until, World, type Options } from './world';

let w: World;
const world = async (replies: Reply[], options: Options = {}) =>
  (w = await World.start(replies, options));
afterEach(async () => {
  await w?.stop();
});
const write = (path: string, content: string) => call('write_file', { path, content });

test('a rewind from the timeline says first what it would change, then does it', async () => {
  await world([write('one.txt', 'one\n'), write('two.txt', 'two\n'), say('Both are written.')]);
  const page = await w.page();
  await send(page, 'Write two files');
  await over(page);
  const side = page.getByRole('complementary', { name: 'Plan and timeline' });
  const step = side.locator('.Side_step').filter({ hasText: 'write one.txt' });
  await step.hover();
  await step.getByRole('button', { name: /after step 1$/ }).click();
  const dialog = page.getByRole('dialog', { name: 'Rewind' });
  await dialog.getByText('1 file would change').first().waitFor();
  await dialog.locator('.dialogs_file').filter({ hasText: 'two.txt' }).waitFor();
  expect(await dialog.locator('.dialogs_file').count()).toBe(1);
  expect(existsSync(join(w.folder, 'two.txt'))).toBe(true);
  await dialog.getByRole('button', { name: 'Rewind to step 1' }).click();
  await said(page, 'rewound');
  expect(existsSync(join(w.folder, 'one.txt'))).toBe(true);
  expect(existsSync(join(w.folder, 'two.txt'))).toBe(false);
  await side.locator('.Side_gone').filter({ hasText: 'write two.txt' }).waitFor();
});

test('an undo says what it takes back; a second one brings it back', async () => {
  await world([write('one.txt', 'one\n'), say('Written.')]);
  const page = await w.page();
  await send(page, 'Write a file');
  await over(page);
  await page.locator('h1').click();
  await page.keyboard.press('u');
  const dialog = page.getByRole('dialog', { name: 'Undo' });
  await dialog.getByText('one.txt').waitFor();
  await dialog.getByRole('button', { name: 'Undo' }).click();
  await until('the file is gone', () => !existsSync(join(w.folder, 'one.txt')));
  await page.locator('dialog').waitFor({ state: 'detached' });
  await send(page, '/undo');
  await dialog.getByRole('button', { name: 'Undo' }).click();
  await until('the file is there again', () => existsSync(join(w.folder, 'one.txt')));
});

test('what others changed since is kept, and named before', async () => {
  await world([write('one.txt', 'one\n'), shell('true'), say('Written.')]);
  const page = await w.page();
  await send(page, 'Write a file');
  await over(page);
  writeFileSync(join(w.folder, 'one.txt'), 'changed by hand\n');
  await send(page, '/rewind');
  const dialog = page.getByRole('dialog', { name: 'Rewind' });
  await dialog.getByText('before the first step').click();
  await dialog.getByText('also overwrite files changed outside this session: one.txt').waitFor();
  await dialog.getByRole('button', { name: 'Rewind to step 0' }).click();
  await said(page, 'rewound');
  expect(readFileSync(join(w.folder, 'one.txt'), 'utf8')).toBe('changed by hand\n');
});

test('a fork is a new session with the same conversation', async () => {
  await world([say('The answer is 42.'), say('In the branch.')]);
  const page = await w.page();
  await send(page, 'What is the answer?');
  await over(page);
  const first = session(page);
  await page.locator('h1').click();
  await page.keyboard.press('f');
  await until('another session', () => session(page) && session(page) !== first);
  await said(page, 'forked from');
  await send(page, 'Go on');
  await said(page, 'In the branch.');
  expect(JSON.stringify(w.model.requests[1])).toContain('The answer is 42.');
  await page.goBack();
  expect(await conversation(page).getByText('In the branch.').count()).toBe(0);
});

test('what a session changed is shown whole', async () => {
  await world([write('one.txt', 'one\n'), shell('echo two > two.txt'), say('ok')]);
  const page = await w.page();
  await send(page, 'Write');
  await over(page);
  await page.locator('h1').click();
  await page.keyboard.press('d');
  const dialog = page.getByRole('dialog', { name: 'What this session changed' });
  await dialog.getByText('2 files').waitFor();
  expect(await dialog.locator('.Diff_add').allInnerTexts()).toHaveLength(2);
});

test('steps, their cost and the proof stand beside the conversation', async () => {
  await world([write('one.txt', 'one\n'), say('Written.')], {
    config: 'verify = ["test -e one.txt"]',
  });
  const page = await w.page();
  await send(page, 'Write a file');
  await over(page);
  expect(await conversation(page).locator('.Transcript_ending').innerText()).toContain('proven');
  const side = page.getByRole('complementary', { name: 'Plan and timeline' });
  expect(await side.innerText()).toMatch(/test -e one.txt\s+passed/);
  expect(await side.locator('.Side_step').count()).toBe(2);
  expect(await side.locator('.panel_foot').innerText()).toMatch(/\$0\.0\d/);
  await page.getByRole('navigation').getByText('proven').waitFor();
});

test('the overview shows what works and what waits in all folders, and answers from there', async () => {
  const { hold, open } = gate();
  await world([shell('touch made'), { ...say('working'), hold }, say('It is made.')], {
    config: 'approve = "ask"',
  });
  const page = await w.page();
  await send(page, 'the one that waits');
  await ask(page).waitFor();
  const other = mkdtempSync(join(tmpdir(), 'dunnock-other-'));
  await w.api('POST', '/api/sessions', { prompt: 'the one that works', workspace: other });
  await page.locator('h1').click();
  await ready(page);
  await page.getByRole('link', { name: /Overview/ }).click();
  const waiting = page.getByRole('region', { name: 'Waiting for you' });
  await waiting.getByText('touch made').waitFor();
  await page.getByRole('region', { name: 'Running' }).getByText('thinking').waitFor();
  await page
    .locator('.parts_top')
    .getByText(/1 session waiting · 1 running · today/)
    .waitFor();
  await ready(page);
  await page.keyboard.press('y');
  await until('it was made', () => existsSync(join(w.folder, 'made')));
  open();
  await page.locator('.parts_top').getByText('0 sessions waiting · 0 running').waitFor();
  await page.getByRole('region', { name: 'Recent' }).getByText('the one that waits').waitFor();
});

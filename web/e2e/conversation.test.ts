/** Conversations: begun, streamed, answered, stopped, in several tabs, through a reload and a killed server (W1, W3, W6, W7, T2, T6). */

import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterEach, expect, test } from 'vitest';
import { ask, conversation, field, ready, said, send, session } from './help';
import { call, gate, say, shell, type Reply } from './model';
import { until, World, type Options } from './world';

let w: World;
/** Of the questions that are on the page. */
const hashes = (page: Page) =>
  page
    .locator('.Question_card')
    .evaluateAll((all) => all.map((el) => (el as HTMLElement).dataset.hash ?? ''));
const world = async (replies: Reply[], options: Options = {}) =>
  (w = await World.start(replies, options));
afterEach(async () => {
  await w?.stop();
});

test('the address opens once, and the code is out of it at once', async () => {
  await world([]);
  const address = await w.address();
  const page = await w.page();
  expect(page.url()).not.toContain('code');
  await page.goto('about:blank');
  await page.goto(address);
  await page.getByRole('navigation', { name: 'Sessions' }).waitFor();
  // A second browser with the same address is not let in, and is told what to do.
  const other = await w.page();
  await other.context().clearCookies();
  await other.evaluate(() => localStorage.clear());
  await other.goto('about:blank');
  await other.goto(address);
  await other.getByText('dunnock web').waitFor();
  await other.getByRole('alert').getByText('get a new one').waitFor();
  expect(await other.getByRole('navigation').count()).toBe(0);
});

test('a new conversation streams its answer', async () => {
  const { hold, open } = gate();
  await world([{ text: 'First part of the answer. ', pace: 5, hold }, say('never')]);
  w.model.next();
  const page = await w.page();
  await send(page, 'Say something');
  await said(page, 'First part of the answer.');
  expect(await page.locator('.Conversation_now').innerText()).toContain('writing');
  open();
  await conversation(page)
    .getByText(/1 step · /)
    .waitFor();
  expect(await page.locator('.Transcript_prompt').innerText()).toContain('Say something');
  expect(await w.wrong(page)).toEqual([]);
});

test('what thinks is told apart from what is said', async () => {
  await world([{ reasoning: 'First I think about it.', text: 'Then I say it.' }]);
  const page = await w.page();
  await send(page, 'Think');
  const thought = page.locator('.Transcript_thought').getByRole('button');
  await thought.getByText('First I think').waitFor();
  await thought.click();
  expect(await page.locator('.Transcript_thought p').innerText()).toContain(
    'First I think about it.',
  );
  await said(page, 'Then I say it.');
});

test('a command shows its output while it runs', async () => {
  await world([shell('for i in 1 2 3; do echo line $i; sleep 0.7; done'), say('ok')]);
  const page = await w.page();
  await send(page, 'Count');
  await conversation(page).getByText('line 1').waitFor();
  expect(await page.locator('.Call_result').innerText()).toMatch(/^\d s$/);
  await conversation(page).getByText('line 3').waitFor();
  await said(page, 'ok');
});

test('approve by key', async () => {
  await world([shell('touch made'), say('It is made.')], { config: 'approve = "ask"' });
  const page = await w.page();
  await send(page, 'Make a file');
  await ask(page).waitFor();
  expect(await ask(page).innerText()).toContain('touch made');
  await until('the title says so', async () => (await page.title()).startsWith('(1) '));
  expect(await page.locator('#icon').getAttribute('href')).toContain('waits');
  await ready(page);
  await page.keyboard.press('y');
  await said(page, 'It is made.');
  expect(existsSync(join(w.folder, 'made'))).toBe(true);
  await until('the title is plain again', async () => !(await page.title()).startsWith('('));
});

test('a key that was meant for something else answers nothing', async () => {
  const { hold, open } = gate();
  await world([{ ...shell('touch made'), hold }, say('over')], { config: 'approve = "ask"' });
  const page = await w.page();
  await send(page, 'Make a file');
  await page.locator('.Conversation_now').waitFor();
  await page.locator('h1').click();
  const pressing = (async () => {
    for (let n = 0; n < 6; n++) {
      await page.keyboard.press('y');
      if (await ask(page).isVisible()) break;
      await new Promise((done) => setTimeout(done, 30));
    }
  })();
  open();
  await pressing;
  await ask(page).waitFor();
  await new Promise((done) => setTimeout(done, 500));
  expect(await ask(page).isVisible()).toBe(true);
  expect(existsSync(join(w.folder, 'made'))).toBe(false);
});

test('a reply never answers, however fast it is typed', async () => {
  await world([shell('touch made'), say('over')], { config: 'approve = "ask"' });
  const page = await w.page();
  await send(page, 'Make a file');
  await ask(page).waitFor();
  await ready(page);
  // The page's clock stands still between keys, however busy the machine is.
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 60_000);
  for (const words of ['why', 'try', 'any', 'no idea', 'yes but'])
    for (const delay of [30, 60, 100, 150, 200, 300, 400]) {
      await page.locator('h1').click();
      for (const letter of words) {
        await page.keyboard.press(letter === ' ' ? 'Space' : letter);
        await page.clock.runFor(delay);
      }
      await page.clock.runFor(1_000);
      expect(await field(page).inputValue(), `every ${delay} ms`).toBe(words);
      expect(await ask(page).isVisible()).toBe(true);
      await field(page).fill('');
    }
  await page.clock.resume();
  expect(existsSync(join(w.folder, 'made'))).toBe(false);
  // A single key waits visibly, can be taken back, and takes effect at once with Enter.
  await page.locator('h1').click();
  await page.keyboard.press('y');
  await ask(page).getByText('“y” in a moment').waitFor();
  await page.keyboard.press('Escape');
  await new Promise((done) => setTimeout(done, 600));
  expect(await ask(page).isVisible()).toBe(true);
  await page.keyboard.press('y');
  await page.keyboard.press('Enter');
  await said(page, 'over');
});

test('decline with a note that the model is told', async () => {
  await world([shell('touch made'), say('As you wish.')], { config: 'approve = "ask"' });
  const page = await w.page();
  await send(page, 'Make a file');
  await ask(page).waitFor();
  await ready(page);
  await page.keyboard.press('t');
  await page.getByLabel('Reason, or what to do instead').fill('write it to notes.txt');
  await page.keyboard.press('Enter');
  await said(page, 'As you wish.');
  expect(existsSync(join(w.folder, 'made'))).toBe(false);
  expect(JSON.stringify(w.model.requests[1])).toContain('write it to notes.txt');
  await conversation(page).getByText('write it to notes.txt').first().waitFor();
});

test('always shows its rule first, then holds', async () => {
  await world([shell('touch one'), shell('touch one'), say('Both are done.')], {
    config: 'approve = "ask"',
  });
  const page = await w.page();
  await send(page, 'Make files');
  await ask(page)
    .getByRole('button', { name: /Always/ })
    .waitFor();
  await ready(page);
  await page.keyboard.press('a');
  await ask(page).getByText('Always allow:').waitFor();
  expect(await ask(page).locator('.Question_more code').first().innerText()).toContain('touch');
  expect(existsSync(join(w.folder, 'one'))).toBe(false);
  // Escape goes back, and stops nothing.
  await page.keyboard.press('Escape');
  await ask(page)
    .getByRole('button', { name: /Run once/ })
    .waitFor();
  await page.keyboard.press('a');
  await ask(page).getByText('Always allow:').waitFor();
  await page.keyboard.press('s');
  // The second call of that shape is not asked about.
  await said(page, 'Both are done.');
  expect(existsSync(join(w.folder, 'one'))).toBe(true);
  expect(w.model.requests).toHaveLength(3);
});

test('always in this project can be listed and taken back', async () => {
  await world([shell('touch one'), say('It is made.')], { config: 'approve = "ask"' });
  const page = await w.page();
  await send(page, 'Make a file');
  await ask(page)
    .getByRole('button', { name: /Always/ })
    .waitFor();
  await ready(page);
  await page.keyboard.press('a');
  // The first Enter opens the rule, the second one grants it.
  await page.keyboard.press('Enter');
  await ask(page).getByText('Always allow:').waitFor();
  await new Promise((done) => setTimeout(done, 600));
  await page.keyboard.press('Enter');
  await said(page, 'It is made.');
  await until('the rule is kept', async () => (await w.run('rules')).stdout.includes('touch'));
  await send(page, '/rules');
  const dialog = page.getByRole('dialog');
  await dialog.getByText('touch').first().waitFor();
  // For the project, and then for this session.
  await dialog.getByRole('button', { name: 'Revoke' }).first().click();
  await dialog.getByText('No rules yet').waitFor();
  expect((await w.run('rules')).stdout).not.toContain('touch');
  await dialog.getByRole('button', { name: 'Revoke' }).click();
  await said(page, 'no longer allowed: shell touch');
});

test('a question is explained before it is answered', async () => {
  await world([shell('curl http://example.org', 'This only lists files.')], {
    config: 'approve = "ask"',
  });
  const page = await w.page();
  await send(page, 'Go');
  await ask(page).waitFor();
  await ready(page);
  await page.keyboard.press('e');
  await ask(page).getByText('is not used').waitFor();
});

test('many questions stand at once, and are gone through one by one', async () => {
  const calls = [1, 2, 3].map((n) => ({ tool: 'shell', args: { command: `touch file-${n}` } }));
  await world([{ calls }, say('All done.')], { config: 'approve = "ask"' });
  const page = await w.page();
  await send(page, 'Make three');
  await ask(page).getByText('1 of 3 waiting').waitFor();
  await ready(page);
  await page.keyboard.press('ArrowRight');
  await ask(page).getByText('2 of 3 waiting').waitFor();
  expect(await ask(page).innerText()).toContain('touch file-2');
  for (let left = 3; left > 0; left--) {
    await ready(page);
    const hash = await ask(page).getAttribute('data-hash');
    await page.keyboard.press('y');
    await until('the next', async () => !(await hashes(page)).includes(hash as string));
  }
  await said(page, 'All done.');
  expect([1, 2, 3].every((n) => existsSync(join(w.folder, `file-${n}`)))).toBe(true);
});

test('the model asks, and one of its choices is taken by its number', async () => {
  await world([
    call('ask_person', { question: 'Which colour?', choices: ['red', 'green'] }),
    say('Green it is.'),
  ]);
  const page = await w.page();
  await send(page, 'Paint');
  await ask(page).getByText('Which colour?').waitFor();
  await ready(page);
  await page.keyboard.press('2');
  await said(page, 'Green it is.');
  expect(JSON.stringify(w.model.requests[1])).toContain('green');
});

test('work is stopped by Escape', async () => {
  await world([shell('sleep 60; touch never')]);
  const page = await w.page();
  await send(page, 'Wait');
  await page.locator('.Call_call .parts_run').waitFor();
  await field(page).focus();
  await page.keyboard.press('Escape');
  await conversation(page).getByText('stopped').first().waitFor();
  expect(existsSync(join(w.folder, 'never'))).toBe(false);
});

test('what is said while it works is queued, and told at the next step', async () => {
  const { hold, open } = gate();
  await world([{ ...shell('true'), hold }, say('I heard.')]);
  const page = await w.page();
  await send(page, 'Begin');
  await page.locator('.Conversation_now').waitFor();
  await send(page, 'and mind the leap years');
  await page.locator('.Conversation_queued').getByText('leap years').waitFor();
  open();
  await said(page, 'I heard.');
  expect(await page.locator('.Conversation_queued').count()).toBe(0);
  expect(JSON.stringify(w.model.requests[1])).toContain('leap years');
});

test('two tabs are in step, and a question closes in both when it is answered in one', async () => {
  await world([shell('touch made'), say('It is made.')], { config: 'approve = "ask"' });
  const one = await w.page();
  await send(one, 'Make a file');
  await ask(one).waitFor();
  const two = await w.page({ context: one.context(), path: `/#/s/${session(one)}` });
  await ask(two).waitFor();
  expect(await ask(two).getAttribute('data-hash')).toBe(await ask(one).getAttribute('data-hash'));
  await ready(two);
  await ask(two)
    .getByRole('button', { name: /Run once/ })
    .click();
  for (const page of [one, two]) {
    await said(page, 'It is made.');
    expect(await ask(page).count()).toBe(0);
  }
});

test('a conflict is shown and healed: nothing typed is lost', async () => {
  await world([say('first'), say('second'), say('third')]);
  const one = await w.page();
  await send(one, 'Begin');
  await said(one, 'first');
  await conversation(one)
    .getByText(/1 step · /)
    .waitFor();
  const id = session(one);
  // Somebody else is quicker, by the moment in which the tab's own words are on their way.
  let held = false;
  await one.route('**/commands', async (route) => {
    if (!held) {
      held = true;
      await w.api('POST', `/api/sessions/${id}/commands`, {
        id: 'other-1',
        command: { prompt: { text: 'somebody else was quicker' } },
      });
    }
    await route.continue();
  });
  await send(one, 'what I wanted to say');
  await one.getByText('This session was changed elsewhere in the meantime').waitFor();
  expect(await field(one).inputValue()).toBe('what I wanted to say');
  await said(one, 'somebody else was quicker');
  await said(one, 'second');
  expect(await field(one).inputValue()).toBe('what I wanted to say');
  await field(one).press('Enter');
  await said(one, 'third');
});

test('a reload in the middle of streaming loses and doubles nothing', async () => {
  const words = Array.from({ length: 300 }, (_, n) => `word${n}`).join(' ');
  await world([{ text: words, piece: 12, pace: 10 }]);
  const page = await w.page();
  await send(page, 'Speak');
  await said(page, 'word20');
  await page.reload();
  await said(page, 'word20');
  await conversation(page)
    .getByText(/1 step · /)
    .waitFor();
  expect(await page.locator('.Transcript_answer .markdown_markdown').innerText()).toBe(words);
});

test('a killed server is survived: the same question, with the same id and hash', async () => {
  await world([shell('touch made'), say('It is made.')], { config: 'approve = "ask"' });
  const page = await w.page();
  await send(page, 'Make a file');
  await ask(page).waitFor();
  const hash = await ask(page).getAttribute('data-hash');
  await w.kill();
  await page.getByText('The server is not responding').waitFor();
  await w.serve();
  // It has other keys now. The page says so, and joins by itself when another tab comes in.
  await page.getByText('The server was restarted').waitFor();
  const other = await page.context().newPage();
  await other.goto(await w.address());
  await ask(page).waitFor();
  expect(await ask(page).getAttribute('data-hash')).toBe(hash);
  await ready(page);
  await ask(page)
    .getByRole('button', { name: /Run once/ })
    .click();
  await said(page, 'It is made.');
  expect(existsSync(join(w.folder, 'made'))).toBe(true);
});

test('a connection that broke in the middle of streaming comes back without a gap', async () => {
  const words = Array.from({ length: 400 }, (_, n) => `w${n}`).join(' ');
  await world([{ text: words, piece: 6, pace: 8 }]);
  const page = await w.page();
  await send(page, 'Speak');
  await said(page, 'w20');
  for (let n = 0; n < 2; n++) {
    await page.context().setOffline(true);
    await new Promise((done) => setTimeout(done, 300));
    await page.context().setOffline(false);
    await new Promise((done) => setTimeout(done, 300));
  }
  await conversation(page)
    .getByText(/1 step · /)
    .waitFor();
  expect(await page.locator('.Transcript_answer .markdown_markdown').innerText()).toBe(words);
});

test('a session that was begun in the terminal is driven here', async () => {
  await world([say('from the terminal'), say('from the browser')]);
  const ran = await w.run('run', 'begin in the terminal');
  expect(ran.stdout).toContain('from the terminal');
  const page = await w.page();
  await page.getByRole('navigation').getByText('begin in the terminal').click();
  await said(page, 'from the terminal');
  await send(page, 'go on in the browser');
  await said(page, 'from the browser');
});

test('a question of a run in a terminal is answered here', async () => {
  await world([shell('touch made'), say('It is made.')], { config: 'approve = "ask"' });
  const ran = await w.run('run', 'make a file');
  expect(ran.status).toBe(3);
  const page = await w.page();
  await page.getByRole('navigation').getByText('make a file').click();
  await ask(page).waitFor();
  await ready(page);
  await page.keyboard.press('y');
  await said(page, 'It is made.');
});

test('a copy-and-paste session is seen and continues in the browser', async () => {
  await world([], { files: { 'README.md': 'The words of the shop.\n' } });
  const ran = await w.run('bridge', 'new', '--once', 'look at the shop');
  expect(ran.stdout).toContain('001-outbox.md');
  const save = (name: string, text: string) =>
    writeFileSync(join(w.folder, '.dunnock/bridge', name), text);
  const page = await w.page();
  await page.getByRole('group', { name: 'Waiting for you' }).getByText('look at the shop').click();
  // The whole paths, to be marked as they are.
  const row = page.locator('.Transcript_open');
  await row.waitFor();
  expect(await row.locator('code').allInnerTexts()).toEqual(
    ['001-outbox.md', '001-inbox.md'].map((name) =>
      expect.stringMatching(new RegExp(`^/.*/\\.dunnock/bridge/${name}$`)),
    ),
  );
  expect(existsSync(await row.locator('code').first().innerText())).toBe(true);
  await page.getByRole('navigation').getByText('copy and paste').waitFor();
  await page
    .locator('.Conversation_now')
    .getByText('waiting for the answer from your chat')
    .waitFor();
  expect(await page.locator('.Conversation_now').innerText()).not.toContain('thinking');
  // This page drives it: a saved answer is read, and the next request is shown.
  save('001-inbox.md', '[READ README.md]\n');
  await conversation(page).getByText('002-outbox.md').waitFor();
  await conversation(page).getByText('read README.md').waitFor();
  expect(await row.count()).toBe(1);
  expect(await conversation(page).locator('.Transcript_outbox').count()).toBe(2);
  await page
    .locator('.Conversation_now')
    .getByText('waiting for the answer from your chat')
    .waitFor();
  save('002-inbox.md', 'All done.\n[DONE]\n');
  await said(page, 'All done.');
  await conversation(page)
    .locator('.Transcript_ending')
    .getByText('done', { exact: true })
    .waitFor();
  expect(await page.locator('.Conversation_now').count()).toBe(0);
  expect(await row.count()).toBe(0);
  expect((await w.api<{ state: string }>('GET', `/api/sessions/${session(page)}`)).state).toBe(
    'done',
  );
  expect(w.model.requests).toHaveLength(0);
  expect(await w.wrong(page)).toEqual([]);
});

test('a session that was begun here is driven in a real terminal', async () => {
  await world([say('from the browser'), shell('touch made'), say('from the terminal')], {
    config: 'approve = "ask"',
  });
  const page = await w.page();
  await send(page, 'begin in the browser');
  await said(page, 'from the browser');
  const id = session(page);
  const tmux = (...words: string[]) =>
    spawnSync('tmux', ['-L', `web-${process.pid}`, ...words], { env: w.env, encoding: 'utf8' });
  try {
    tmux(
      'new-session',
      '-d',
      '-x',
      '100',
      '-y',
      '30',
      '-c',
      w.folder,
      `${w.bin} open --resume ${id}`,
    );
    await until('the terminal shows it', () =>
      tmux('capture-pane', '-p').stdout.includes('from the browser'),
    );
    tmux('send-keys', 'go on in the terminal', 'Enter');
    // The page follows, and the question that the terminal's prompt led to is answered on the page.
    await said(page, 'go on in the terminal');
    await ask(page).waitFor();
    await until('the terminal asks', () =>
      tmux('capture-pane', '-p').stdout.includes('Run this command?'),
    );
    await ready(page);
    await ask(page)
      .getByRole('button', { name: /Run once/ })
      .click();
    await said(page, 'from the terminal');
    await until('the terminal shows the end', () =>
      tmux('capture-pane', '-p').stdout.includes('from the terminal'),
    );
  } finally {
    tmux('kill-server');
  }
});

test('files are named by @, and commands by /', async () => {
  await world([say('ok')], { files: { 'src/dates.rs': '', 'src/cart.rs': '', 'README.md': '' } });
  const page = await w.page();
  await field(page).fill('');
  await field(page).pressSequentially('look at @dat');
  await page.getByRole('option', { name: /src\/dates.rs/ }).waitFor();
  await page.keyboard.press('Enter');
  expect(await field(page).inputValue()).toBe('look at @src/dates.rs ');
  await page.keyboard.press('Enter');
  await said(page, 'ok');
  await field(page).pressSequentially('/ke');
  await page.getByRole('option', { name: /\/keys/ }).waitFor();
  await page.keyboard.press('Tab');
  await page.getByRole('dialog', { name: 'Keys and commands' }).waitFor();
  await page.keyboard.press('Escape');
  expect(await page.getByRole('dialog').count()).toBe(0);
});

test('a picture is pasted, kept and shown', async () => {
  await world([say('A red dot.')]);
  const page = await w.page();
  await field(page).focus();
  await page.evaluate(async () => {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 8;
    const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done));
    const data = new DataTransfer();
    data.items.add(new File([blob as Blob], 'dot.png', { type: 'image/png' }));
    document
      .getElementById('composer')
      ?.dispatchEvent(
        new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }),
      );
  });
  await page.getByAltText('dot.png').waitFor();
  await send(page, 'What is this?');
  await said(page, 'A red dot.');
  expect(JSON.stringify(w.model.requests[0])).toContain('data:image/png;base64');
  await page.locator('.Transcript_prompt img').waitFor();
  expect(
    await page
      .locator('.Transcript_prompt img')
      .evaluate((img: HTMLImageElement) => img.naturalWidth),
  ).toBe(8);
  expect(await w.wrong(page)).toEqual([]);
});

test('a file that the model wrote is shown as a change, in one column or two', async () => {
  await world(
    [
      call('replace_text', { path: 'a.rs', old: 'let x = 1;', new: 'let x = 2;\nlet y = 3;' }),
      say('changed'),
    ],
    { files: { 'a.rs': 'fn main() {\n    let x = 1;\n}\n' } },
  );
  writeFileSync(join(w.folder, '.keep'), '');
  const page = await w.page();
  await send(page, 'Change it');
  await said(page, 'changed');
  await page.locator('.Diff_add').first().waitFor();
  expect(await page.locator('.Call_result').innerText()).toContain('+2 −1');
  await page.locator('.Diff_line .tok-keyword').first().waitFor();
  await page.getByRole('button', { name: 'Side by side' }).click();
  await page.locator('.Diff_split .Diff_pair').first().waitFor();
  expect(await w.wrong(page)).toEqual([]);
});

test('sessions are found by what was said in them', async () => {
  await world([say('The zebra crossed the road.'), say('Nothing of that kind.')]);
  await w.run('run', 'tell me of animals');
  await w.run('run', 'tell me of plants');
  const page = await w.page();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Text to search for' }).fill('zebra');
  await page.getByRole('option', { name: /animals/ }).waitFor();

  await until(
    'only that one',
    async () => (await page.locator('.dialogs_found [role=option]').count()) === 1,
  );
  await page.keyboard.press('Enter');
  await said(page, 'The zebra crossed the road.');
});

test('another folder is worked in', async () => {
  await world([shell('pwd'), say('there')]);
  const other = join(w.home, 'other');
  spawnSync('mkdir', [other]);
  const page = await w.page();
  await page.getByText('Another folder').click();
  await page.getByLabel('Full path of a folder').fill(other);
  await page.getByRole('button', { name: 'Use this folder' }).click();
  await page.locator('[data-testid=folder]').getByText('other').waitFor();
  await send(page, 'Where are you?');
  await conversation(page).getByText(other).first().waitFor();
});

test('the model and who is asked are switched in the session', async () => {
  await world([say('one'), say('two')]);
  const page = await w.page();
  await send(page, 'Begin');
  await said(page, 'one');
  const model = page.getByRole('combobox', { name: 'Model' });
  await model.hover();
  await until('the models are there', async () => (await model.locator('option').count()) === 2);
  await model.selectOption('mock/m-2');
  await said(page, 'Set model to mock/m-2');
  await page.getByRole('combobox', { name: 'Approvals' }).selectOption('read');
  await until('it is kept', async () =>
    JSON.stringify(await w.api('GET', `/api/sessions/${session(page)}`)).includes('"mode":"read"'),
  );
  await send(page, 'Again');
  await said(page, 'two');
  expect(JSON.stringify(w.model.requests[1])).toContain('m-2');
});

test('what was sent is not there again, and what was closed gives the focus back', async () => {
  await world([say('one'), say('two')]);
  const page = await w.page();
  await send(page, 'sent once');
  await said(page, 'one');
  await page.goto(`${w.url}/#/`);
  await page.locator('[data-testid=folder] b').waitFor();
  expect(await field(page).inputValue()).toBe('');
  await page.goBack();
  await said(page, 'one');
  // Frames come late on a busy machine; letters must not wait for them.
  await page.evaluate(() => {
    const frame = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (then) =>
      frame(() => setTimeout(() => then(performance.now()), 300));
  });
  for (let n = 0; n < 3; n++) {
    await field(page).fill('');
    await field(page).focus();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.type('go on typing');
    expect(await field(page).inputValue()).toBe('go on typing');
  }
});

test('without a network everything that is on this machine goes on', async () => {
  await world([say('one')]);
  const page = await w.page();
  await send(page, 'Begin');
  await said(page, 'one');
  // What a browser says when the Wi-Fi is gone; the server is on this machine.
  await page.evaluate(() => window.dispatchEvent(new Event('offline')));
  await send(page, '/cost');
  await page.getByRole('dialog').getByText('Tokens').first().waitFor();
  await page.keyboard.press('Escape');
  await send(page, '/rewind');
  await page.getByRole('dialog').getByText('before the first step').waitFor();
});

test('with the server gone the page stays, and says so', async () => {
  await world([say('one')]);
  const page = await w.page();
  await send(page, 'Begin');
  await said(page, 'one');
  await w.kill();
  await page.getByText('The server is not responding').waitFor();
  await page.locator('h1').click();
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys and commands' }).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('o');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  expect(await w.wrong(page)).toEqual([]);
});

test('an address that was used lets a browser in that is known already', async () => {
  await world([]);
  const page = await w.page();
  const used = await w.address();
  await page.goto(used);
  await page.goto('about:blank');
  await page.goto(used);
  await page.getByRole('navigation', { name: 'Sessions' }).waitFor();
});

test('sessions are gone through by keys, one after the other', async () => {
  await world([say('a'), say('b'), say('c')]);
  for (const name of ['first', 'second', 'third']) await w.run('run', name);
  const page = await w.page();
  await page.getByRole('navigation').getByText('third').waitFor();
  await page.locator('h1').click();
  const seen: string[] = [];
  for (let n = 0; n < 3; n++) {
    const before = page.url();
    await page.keyboard.press('j');
    await until('the next', () => page.url() !== before);
    await conversation(page).locator('.Transcript_ending').waitFor();
    seen.push(session(page));
  }
  expect(new Set(seen).size).toBe(3);
});

test('a path is sent as words, not taken for a command', async () => {
  await world([say('I see.')]);
  const page = await w.page();
  await send(page, '/home/ada/x.rs fails, why?');
  await said(page, 'I see.');
});

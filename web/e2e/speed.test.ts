/**
 * Figures: how large the first view is, how soon it can be used, how smooth it is while much streams, how long a long session takes.
 * Wall time is printed, and held to its bound only by `cargo xtask long figures` on a quiet machine.
 */

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { build } from 'vite';
import react from '@vitejs/plugin-react';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { afterEach, expect, test } from 'vitest';
import { conversation, over, said, send, session } from './help';
import { say, shell, type Reply } from './model';
import { World, until } from './world';

const DIST = join(import.meta.dirname, '../dist');
let w: World | undefined;
afterEach(async () => {
  await w?.stop();
  w = undefined;
});
// oxlint-disable-next-line no-console -- figures are for people
const tell = (text: string) => console.log(`figure: ${text}`);
const HELD = process.env.DUNNOCK_HOLD_FIGURES !== undefined;

test('the first view is small, and the rest comes when it is needed', () => {
  const html = readFileSync(join(DIST, 'index.html'), 'utf8');
  const first = [...html.matchAll(/\/assets\/([^"]+\.(?:js|css))/g)].map((m) => m[1] as string);
  const sizes = first.map((name) => statSync(join(DIST, 'assets', `${name}.gz`)).size);
  const sum = sizes.reduce((a, b) => a + b, html.length);
  const all = readdirSync(join(DIST, 'assets')).reduce(
    (n, name) => n + statSync(join(DIST, 'assets', name)).size,
    0,
  );
  tell(
    `first view ${Math.round(sum / 1024)} KB compressed (bar 250), all of it ${Math.round(all / 1024)} KB`,
  );
  expect(first.length).toBeGreaterThan(1);
  expect(sum).toBeLessThan(250 * 1024);
});

/** An empty React page, to compare with: the same server of files, the same browser. */
async function emptyPage(): Promise<{ url: string; close: () => void }> {
  // Below the app's own folder, so that the same React is found.
  const folder = mkdtempSync(join(import.meta.dirname, '../node_modules/.empty-'));
  writeFileSync(
    join(folder, 'index.html'),
    '<!doctype html><html lang="en"><body><div id="app"></div><script type="module" src="/main.tsx"></script></body></html>',
  );
  writeFileSync(
    join(folder, 'main.tsx'),
    "import { createRoot } from 'react-dom/client';\ncreateRoot(document.getElementById('app')!).render(<textarea id=\"composer\" />);\n",
  );
  await build({
    root: folder,
    logLevel: 'silent',
    configFile: false,
    plugins: [react()],
    build: { outDir: join(folder, 'out') },
  });
  const out = join(folder, 'out');
  const server = createServer((request, answer) => {
    const path = request.url === '/' ? '/index.html' : (request.url ?? '');
    try {
      const bytes = readFileSync(join(out, path));
      answer
        .writeHead(200, { 'content-type': path.endsWith('.js') ? 'text/javascript' : 'text/html' })
        .end(bytes);
    } catch {
      answer.writeHead(404).end();
    }
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => {
      server.close();
      server.closeAllConnections();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Milliseconds from the request until the field is there. */
async function usable(page: Page, url: string): Promise<number> {
  await page.goto('about:blank');
  await page.addInitScript(() => {
    const look = () => {
      if (document.getElementById('composer'))
        (window as unknown as { usable: number }).usable = performance.now();
      else requestAnimationFrame(look);
    };
    look();
  });
  await page.goto(url);
  return until('it can be used', () =>
    page.evaluate(() => (window as unknown as { usable?: number }).usable),
  );
}

const median = (all: number[]) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)] as number;

test('how soon it can be used, beside an empty page', async () => {
  w = await World.start([]);
  const page = await w.page();
  const empty = await emptyPage();
  try {
    const [ours, theirs]: number[][] = [[], []];
    for (let n = 0; n < 5; n++) {
      theirs!.push(await usable(page, empty.url));
      ours!.push(await usable(page, `${w.url}/#/`));
    }
    const [a, b] = [median(ours!), median(theirs!)];
    tell(
      `usable after ${Math.round(a)} ms (an empty React page: ${Math.round(b)} ms; bar 500 ms or twice that)`,
    );
    expect(!HELD || a < 500 || a < 2 * b).toBe(true);
  } finally {
    empty.close();
  }
});

/** Words, lists and code, as answers are; and one long piece of code, which has no block that is done before its end. */
const block = (n: number) =>
  `## Part ${n}\n\nSome words about part ${n}, with \`code\`, **weight** and a [link](https://example.org/${n}).\n\n- one thing\n- another thing\n\n\`\`\`rust\nfn part_${n}(x: u32) -> u32 {\n    // a comment\n    x * ${n} + 1\n}\n\`\`\`\n\n`;
const STREAMS: [string, string][] = [
  ['an answer of many parts', Array.from({ length: 300 }, (_, n) => block(n)).join('')],
  [
    'one piece of code',
    `Here it is:\n\n\`\`\`rust\n${Array.from({ length: 1300 }, (_, n) => `    let value_${n} = compute(${n}); // line ${n}`).join('\n')}\n\`\`\`\n`,
  ],
];

test.each(STREAMS)(
  'two thousand tokens a second stream without a long task: %s',
  async (name, text) => {
    w = await World.start([say('warm'), { text, piece: 240, pace: 20 }]);
    const page = await w.page();
    await send(page, 'warm up');
    await over(page);
    await page.evaluate(() => {
      const tasks: number[] = [];
      (window as unknown as { tasks: number[] }).tasks = tasks;
      new PerformanceObserver((list) =>
        tasks.push(...list.getEntries().map((e) => e.duration)),
      ).observe({ type: 'longtask' });
    });
    // What measures must see a task that is too long.
    await page.evaluate(() =>
      setTimeout(() => {
        for (const end = performance.now() + 150; performance.now() < end;) continue;
      }),
    );
    await until('a long task is seen', () =>
      page.evaluate(() =>
        (window as unknown as { tasks: number[] }).tasks.splice(0).some((ms) => ms >= 100),
      ),
    );
    const began = Date.now();
    await send(page, 'Speak');
    // Looked for in a way that costs the page nothing.
    await until('it works', () =>
      page.evaluate(() => document.querySelector('.Conversation_now') !== null),
    );
    await until(
      'it ended',
      () => page.evaluate(() => document.querySelector('.Conversation_now') === null),
      300_000,
    );
    const seconds = (Date.now() - began) / 1000;
    const tasks = await page.evaluate(() => (window as unknown as { tasks: number[] }).tasks);
    const longest = Math.max(0, ...tasks);
    tell(
      `${name}: ${Math.round(text.length / 4 / seconds)} tokens/s over ${seconds.toFixed(1)} s (${text.length} letters): longest task ${Math.round(longest)} ms (bar 100), ${tasks.length} over 50 ms`,
    );
    expect(text.length).toBeGreaterThan(40_000);
    if (!HELD) return;
    expect(text.length / 4 / seconds).toBeGreaterThan(2000);
    expect(longest).toBeLessThanOrEqual(100);
  },
);

test('a transcript of many events opens, and scrolls', async () => {
  // About five facts a step; ten thousand of them where figures are held.
  const steps = HELD ? 2000 : 300;
  const replies: Reply[] = Array.from({ length: steps }, (_, n) => ({
    ...shell(`echo step ${n}`),
    piece: 1000,
  }));
  w = await World.start([...replies, say('That was long.')], {
    config: 'sandbox = "off"\napprove = "all"',
  });
  const { id } = await w.api<{ id: string }>('POST', '/api/sessions', {
    prompt: 'Go on for long',
    set: { max_steps: 3000, attended: false, checkpoints: false },
  });
  await until(
    'it is long',
    async () =>
      (await w!.api<{ state: string }>('GET', `/api/sessions/${id}?limit=0`)).state === 'done',
    500_000,
  );
  const { seq } = await w.api<{ seq: number }>('GET', `/api/sessions/${id}?limit=0`);
  const page = await w.page();
  const times: number[] = [];
  for (let n = 0; n < 3; n++) {
    await page.goto(`${w.url}/#/`);
    await page.locator('[data-testid=folder] b').waitFor();
    times.push(
      await page.evaluate(async (to) => {
        const began = performance.now();
        location.hash = to;
        while (!document.querySelector('.Transcript_ending'))
          await new Promise((done) => requestAnimationFrame(done));
        return performance.now() - began;
      }, `#/s/${id}`),
    );
  }
  const drawn = await conversation(page).locator('.Transcript_row').count();
  const scroll = await page.evaluate(async () => {
    const el = document.querySelector('.Transcript_scroller') as HTMLElement;
    const frames: number[] = [];
    let last = performance.now();
    for (let n = 0; n < 60; n++) {
      el.scrollTop -= 1500;
      await new Promise((done) => requestAnimationFrame(done));
      frames.push(performance.now() - last);
      last = performance.now();
    }
    el.scrollTop = 0;
    await new Promise((done) => setTimeout(done, 300));
    return {
      longest: Math.max(...frames),
      rows: document.querySelectorAll('.Transcript_row').length,
    };
  });
  await said(page, 'Go on for long');
  tell(
    `${seq} facts open in ${Math.round(median(times))} ms (bar 1000); ${drawn} rows are drawn; the longest frame while scrolling took ${Math.round(scroll.longest)} ms`,
  );
  expect(seq).toBeGreaterThanOrEqual(steps * 5);
  expect(session(page)).toBe(id);
  expect(drawn).toBeLessThan(60);
  expect(!HELD || median(times) < 1000).toBe(true);
}, 600_000);

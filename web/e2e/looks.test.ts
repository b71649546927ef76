/** Every screen, in both themes, wide and on a phone: pictures to be looked at, axe-core, and what a keyboard alone can do. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, conversation, field, over, ready, said, send, session } from './help';
import { call, gate, say, shell } from './model';
import { SHOTS, until, World } from './world';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const DATES =
  'impl Date {\n    /// The same day, some months later.\n    fn add_months(self, n: u32) -> Date {\n        let month = (self.month + n) % 12;\n        Date::new(self.year, month, self.day)\n    }\n}\n';
const LONG =
  'A title that goes on and on because somebody pasted a whole paragraph into the field and pressed enter before thinking about it';

let w: World;
let ids: Record<string, string> = {};
const done = gate();

beforeAll(async () => {
  w = await World.start(
    [
      {
        reasoning: 'The failing case adds one month to 31 January, so the day has to be clamped.',
        ...call(
          'search_text',
          { pattern: 'add_months', path: 'src' },
          "The clamp is missing in `add_months`. I'll look at the callers before changing it.",
        ),
      },
      call('replace_text', {
        path: 'src/dates.rs',
        old: '        Date::new(self.year, month, self.day)',
        new: '        // The 31st does not exist in every month: stay on the last day.\n        let day = self.day.min(days_in(self.year, month));\n        Date::new(self.year, month, day)',
      }),
      {
        calls: [
          {
            tool: 'update_plan',
            args: {
              steps: [
                { text: 'Find where months are added', state: 'done' },
                { text: 'Clamp the day', state: 'done' },
                { text: 'Replace the hand-made month table', state: 'active' },
                { text: 'Run all tests', state: 'pending' },
              ],
            },
          },
          {
            tool: 'shell',
            args: {
              command:
                'printf "running 14 tests\\n\\033[32mtest result: ok.\\033[0m 14 passed; 0 failed\\n"',
            },
          },
        ],
      },
      shell(
        'curl -sSf https://example.org/time-0.3.tar.gz -o vendor.tar.gz',
        'The time crate is needed for the leap years.',
      ),
      say(
        '# The cause\n\nThe month arithmetic kept the **day**, which does not exist in every month:\n\n1. 31 January plus one month\n2. 31 March plus one month\n\n```rust\n// stay on the last day\nlet day = self.day.min(days_in(year, month));\n```\n\n| case | before | now |\n|---|:---:|---:|\n| 31 Jan + 1 month | panic | 28 Feb |\n| 31 Mar + 1 month | panic | 30 Apr |\n\n> See [the book](https://example.org/dates).\n',
      ),
      say('There is nothing wrong with it.'),
      shell('for i in $(seq 30); do echo line $i; done; echo "error: it broke" >&2; exit 3'),
      say('They fail.'),
      call('write_file', {
        path: 'notes.md',
        content: Array.from(
          { length: 60 },
          (_, n) =>
            `Line ${n} of what is written down, with some words so that it is long enough to be broken on a phone`,
        ).join('\n'),
      }),
      shell('docker compose up -d'),
      call('delete_file', { path: 'src/dates.rs' }),
      shell('git reset --hard HEAD~1'),
      call('ask_person', {
        question: 'Which colour should the bicycle shed have? It is seen from the road.',
        choices: ['red', 'green', 'the one that it has'],
      }),
      { ...say('still thinking'), hold: done.hold },
    ],
    { files: { 'src/dates.rs': DATES, 'AGENTS.md': 'Be kind.\n' } },
  );
  const make = async (name: string, prompt: string, until_: string, set = {}) => {
    const { id } = await w.api<{ id: string }>('POST', '/api/sessions', { prompt, set });
    ids[name] = id;
    await until(
      name,
      async () => (await w.api<{ state: string }>('GET', `/api/sessions/${id}`)).state === until_,
    );
  };
  await make(
    'asks',
    'The test in tests/dates.rs fails on the last day of a month. Please fix the cause, not the test.',
    'waiting',
  );
  w.model.next();
  await make('done', 'Explain what was wrong', 'done');
  await make('long', LONG, 'done');
  await make('failed', 'Run the tests', 'done');
  await make('edit', 'Write it down', 'waiting', { mode: 'ask' });
  await make('leaves', 'Start the services', 'waiting');
  await make('deletes', 'Remove what is not used', 'waiting', { mode: 'ask' });
  await make('destroys', 'Begin anew', 'waiting');
  await make('person', 'Paint it', 'waiting');
  await make('works', 'Move the configuration to TOML', 'working');
  const outbox = await w.run('bridge', 'new', '--once', 'Tell me what this shop sells');
  ids.awaiting = /session: (\S+)/.exec(outbox.stdout)?.[1] ?? '';
});
afterAll(async () => {
  done.open();
  await w?.stop();
});

interface Screen {
  name: string;
  open: (page: Page, phone: boolean) => Promise<void>;
}

const visit = (name: string) => async (page: Page) => {
  await page.goto(`${w.url}/#/s/${ids[name]}`);
  await conversation(page).locator('.Transcript_row').first().waitFor();
};

const waiting = (name: string, heading: string) => async (page: Page) => {
  await visit(name)(page);
  await ask(page).getByRole('heading', { name: heading }).waitFor();
};

const dialog =
  (name: string, words: string, wait: (page: Page) => Promise<unknown>) => async (page: Page) => {
    await visit(name)(page);
    await send(page, words);
    await page.getByRole('dialog').waitFor();
    await wait(page);
  };

const SCREENS: Screen[] = [
  {
    name: 'start',
    open: async (page) => {
      await page.goto(`${w.url}/#/`);
      await page.locator('[data-testid=folder] b').waitFor();
    },
  },
  {
    name: 'question',
    open: async (page) => {
      await visit('asks')(page);
      await ask(page).waitFor();
      await page.locator('.Diff_add').first().waitFor({ state: 'attached' });
    },
  },
  {
    name: 'note',
    open: async (page) => {
      await visit('asks')(page);
      await ask(page).waitFor();
      await ready(page);
      await ask(page)
        .getByRole('button', { name: /with a note/ })
        .click();
      await page.getByLabel('Reason, or what').waitFor();
    },
  },
  {
    name: 'explain',
    open: async (page) => {
      await visit('asks')(page);
      await ask(page).waitFor();
      await ready(page);
      await ask(page)
        .getByRole('button', { name: /Explain/ })
        .click();
      await page.locator('.Question_explain').waitFor();
    },
  },
  {
    name: 'always',
    open: async (page) => {
      await visit('edit')(page);
      await ask(page)
        .getByRole('button', { name: /Always/ })
        .waitFor();
      await ask(page)
        .locator('.Question_body')
        .evaluate((el) => el.scrollTo(0, el.scrollHeight));
      await ready(page);
      await ask(page)
        .getByRole('button', { name: /Always/ })
        .click();
      await page.getByText('Always allow:').waitFor();
    },
  },
  { name: 'unsandboxed', open: waiting('leaves', 'outside the sandbox') },
  { name: 'deletion', open: waiting('deletes', 'Delete this file?') },
  { name: 'destructive', open: waiting('destroys', 'destructive') },
  { name: 'edit', open: waiting('edit', 'Make this change?') },
  {
    name: 'choices',
    open: async (page) => {
      await visit('person')(page);
      await ask(page).getByText('Which colour').waitFor();
    },
  },
  {
    name: 'failed',
    open: async (page) => {
      await visit('failed')(page);
      await page.locator('.Call_call .parts_bad').waitFor();
    },
  },
  {
    name: 'done',
    open: async (page) => {
      await visit('done')(page);
      await page.locator('.Code_code .tok-comment').waitFor();
    },
  },
  {
    name: 'long',
    open: async (page) => {
      await visit('long')(page);
      await over(page);
    },
  },
  {
    name: 'working',
    open: async (page) => {
      await visit('works')(page);
      await page.locator('.Conversation_now').waitFor();
    },
  },
  {
    name: 'awaiting-reply',
    open: async (page) => {
      await visit('awaiting')(page);
      await page.locator('.Transcript_open').waitFor();
    },
  },
  {
    name: 'overview',
    open: async (page) => {
      await page.goto(`${w.url}/#/all`);
      await ask(page).first().waitFor();
    },
  },
  {
    name: 'search',
    open: async (page) => {
      await page.goto(`${w.url}/#/`);
      await page.locator('[data-testid=folder] b').waitFor();
      await page.keyboard.press('Control+k');
      await page.locator('[role=option]').first().waitFor();
    },
  },
  { name: 'keys', open: dialog('done', '/keys', async () => {}) },
  {
    name: 'rewind',
    open: dialog('asks', '/rewind', async (page) => {
      await page.getByText('before the first step').click();
      await page.locator('dialog .dialogs_file').first().waitFor();
    }),
  },
  {
    name: 'changes',
    open: dialog('asks', '/diff', (page) => page.locator('dialog .Diff_add').first().waitFor()),
  },
  { name: 'cost', open: dialog('done', '/cost', async () => {}) },
  {
    name: 'rules',
    open: dialog('done', '/rules', (page) => page.getByText('No rules yet').waitFor()),
  },
  { name: 'undo', open: dialog('done', '/undo', async () => {}) },
  {
    name: 'missing',
    open: async (page) => {
      await page.goto(`${w.url}/#/s/nosuchsession00000000`);
      await page.getByRole('alert').waitFor();
    },
  },
  {
    name: 'menu',
    open: async (page) => {
      await visit('done')(page);
      await field(page).fill('/');
      await page.locator('[role=option]').first().waitFor();
    },
  },
  {
    name: 'folded',
    open: async (page, phone) => {
      await visit('done')(page);
      if (!phone) {
        await page.getByRole('button', { name: 'Session list' }).click();
        await page.getByRole('button', { name: 'Timeline' }).click();
        await page.locator('aside').waitFor({ state: 'hidden' });
      }
    },
  },
  {
    name: 'list',
    open: async (page, phone) => {
      await visit('done')(page);
      if (phone) await page.getByRole('button', { name: 'Session list' }).click();
    },
  },
  {
    name: 'timeline',
    open: async (page, phone) => {
      await visit('asks')(page);
      if (phone) await page.getByRole('button', { name: 'Timeline' }).click();
    },
  },
];

interface Found {
  id: string;
  nodes: { target: string[]; failureSummary?: string }[];
}

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const found = (await page.evaluate(
    'axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations)',
  )) as Found[];
  return found.flatMap((v) =>
    v.nodes.map(
      (n) =>
        `${v.id}: ${n.target.join(' ')} ${(n.failureSummary ?? '').replace(/\s+/g, ' ').slice(0, 160)}`,
    ),
  );
}

const sizes = [
  ['wide', 1440, 900],
  ['phone', 360, 740],
] as const;
/** Every screen in every look takes minutes: `cargo xtask long screens`. CI shows each screen in one of the four looks. */
const ALL = process.env.DUNNOCK_ALL_SCREENS !== undefined;

for (const dark of [false, true]) {
  for (const [size, width, height] of sizes) {
    const kind = `${dark ? 'dark' : 'light'}, ${size}`;
    test(`every screen, ${kind}: nothing is cut off, axe finds nothing, the policy holds`, async () => {
      const page = await w.page({ width, height, dark });
      const wrong: string[] = [];
      mkdirSync(join(SHOTS), { recursive: true });
      const some = SCREENS.filter(
        (_, n) => ALL || n % 4 === (dark ? 2 : 0) + (size === 'phone' ? 1 : 0),
      );
      for (const screen of some) {
        await page.goto('about:blank');
        await screen
          .open(page, size === 'phone')
          .catch((error: Error) => wrong.push(`${screen.name}: ${error.message}`));
        await page.screenshot({
          path: join(SHOTS, `${screen.name}-${dark ? 'dark' : 'light'}-${size}.png`),
        });
        const cut = await page.evaluate(
          () => document.documentElement.scrollWidth > window.innerWidth + 1,
        );
        if (cut) wrong.push(`${screen.name}: wider than the screen`);
        wrong.push(...(await violations(page)).map((v) => `${screen.name}: ${v}`));
        wrong.push(...(await w.wrong(page)).map((v) => `${screen.name}: ${v}`));
        await page.evaluate(() => {
          sessionStorage.clear();
          localStorage.removeItem('dunnock.folded');
        });
      }
      expect(wrong).toEqual([]);
      // oxlint-disable-next-line no-console -- counted by whoever reads the log
      console.log(
        `${kind}: ${some.length} screens (${some.map((s) => s.name).join(', ')}), 0 violations`,
      );
    }, 600_000);
  }
}

test('a page that is not known here says how to sign in, in both themes', async () => {
  for (const dark of [false, true]) {
    const page = await w.page({ dark });
    await page.context().clearCookies();
    await page.evaluate(() => localStorage.clear());
    await page.reload();
    await page.getByText('You are not signed in').waitFor();
    await page.screenshot({ path: join(SHOTS, `login-${dark ? 'dark' : 'light'}-wide.png`) });
    expect(await violations(page)).toEqual([]);
  }
});

test('at twice the size nothing is lost', async () => {
  // What a browser does at 200 % of a 1280 pixel window.
  const page = await w.page({ width: 640, height: 400 });
  await visit('asks')(page);
  await ask(page).waitFor();
  for (const name of [/Allow these hosts once/, /Decline$/, /Explain/]) {
    // On the screen, and not under something else.
    const button = ask(page).getByRole('button', { name });
    await button.scrollIntoViewIfNeeded();
    expect(
      await button.evaluate((el) => {
        const rect = el.getBoundingClientRect();
        return el.contains(
          document.elementFromPoint(rect.x + rect.width / 2, rect.y + rect.height / 2),
        );
      }),
      String(name),
    ).toBe(true);
  }
  expect(
    await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth + 1),
  ).toBe(true);
});

test('on a phone: begin, answer by a tap, look at the steps, go to another session', async () => {
  const k = await World.start([shell('touch made'), say('It is made.')], {
    config: 'approve = "ask"',
  });
  try {
    const page = await k.page({ width: 360, height: 740 });
    await field(page).fill('Make a file');
    await page.getByRole('button', { name: /Send/ }).click();
    await ask(page).waitFor();
    await ready(page);
    await ask(page)
      .getByRole('button', { name: /Run once/ })
      .click();
    await said(page, 'It is made.');
    await over(page);
    const side = page.getByRole('complementary', { name: 'Plan and timeline' });
    expect(await side.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Timeline' }).click();
    await side.getByText('touch made').waitFor();
    await page.getByRole('button', { name: 'Close the timeline' }).click();
    await page.getByRole('button', { name: 'Session list' }).click();
    await page.getByRole('navigation').getByRole('link', { name: /New/ }).click();
    await page.getByRole('heading', { name: 'New session' }).waitFor();
    expect(await page.locator('nav').isVisible()).toBe(false);
    expect(await k.wrong(page)).toEqual([]);
  } finally {
    await k.stop();
  }
});

test('a keyboard is enough: begin, read, answer, go back, find', async () => {
  const k = await World.start([shell('touch made'), say('It is made.')], {
    config: 'approve = "ask"',
  });
  try {
    const page = await k.page();
    await until('the field has the focus', () =>
      page.evaluate(() => document.activeElement?.id === 'composer'),
    );
    await page.keyboard.type('Make a file');
    await page.keyboard.press('Enter');
    await ask(page).waitFor();
    await until('the question has it', () =>
      page.evaluate(() => document.activeElement?.matches('.Question_card')),
    );
    await ready(page);
    await page.keyboard.press('y');
    await said(page, 'It is made.');
    await over(page);
    const id = session(page);
    // Everything that can be done is reached by Tab, and what has the focus is seen.
    const reached = new Set<string>();
    await page.keyboard.press('Escape');
    for (let n = 0; n < 60; n++) {
      await page.keyboard.press('Tab');
      const at = await page.evaluate(() => {
        const el = document.activeElement as HTMLElement;
        const style = getComputedStyle(el);
        // The field itself is framed by the input, which darkens.
        const frame = el.id === 'composer' ? el.closest('.Composer_input') : null;
        const line = getComputedStyle(document.querySelector('.Call_call') as Element).borderColor;
        const seen =
          (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) ||
          (frame !== null && getComputedStyle(frame).borderColor !== line);
        return {
          name: (el.getAttribute('aria-label') ?? el.innerText ?? '').trim().split('\n')[0] ?? '',
          seen,
          tag: el.tagName,
        };
      });
      if (at.tag === 'BODY') continue;
      expect(at, `focus on ${at.name} is not seen`).toMatchObject({ seen: true });
      reached.add(at.name);
    }
    for (const name of [
      'Search all sessions',
      'New',
      'Overview',
      'Conversation',
      'What to do next',
      'Undo',
      'Changes',
      'Fork',
      'Approvals',
      'Model',
    ])
      expect(
        [...reached].some((r) => r.startsWith(name)),
        `${name} among ${[...reached].join(' | ')}`,
      ).toBe(true);
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await page.keyboard.press('r');
    await page.getByRole('dialog', { name: 'Rewind' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('c');
    await until('a new one', () => !page.url().includes('/s/'));
    // Repeating it changes nothing; the first may come while the page is still drawn.
    await until('the search', async () => {
      await page.keyboard.press('Control+k');
      return page.locator('[role=option]').first().isVisible();
    });
    await page.keyboard.press('Enter');
    await until('found again', () => page.url().includes(id));
    expect(await k.wrong(page)).toEqual([]);
  } finally {
    await k.stop();
  }
});

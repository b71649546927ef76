/** Nothing in an argument changes what the page says of a call that needs approval: `fixtures/approvals/forged.json`, as in `crates/dunnock/tests/forged.rs`. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { ask, ready, send } from './help';
import { until, World } from './world';

interface Call {
  tool: string;
  args: Record<string, unknown>;
  heading: string;
  yes: string;
  reasons: string[];
  access: string[];
  rule: string | null;
}
const TABLE = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../fixtures/approvals/forged.json'), 'utf8'),
) as { calls: Call[]; values: string[] };
const put = (args: Call['args'], value: string) =>
  JSON.parse(
    JSON.stringify(args).replaceAll('@', JSON.stringify(value).slice(1, -1)),
  ) as Call['args'];

let w: World | undefined;
afterAll(async () => w?.stop());

test('no argument changes a heading, a reason, what a yes grants, a label or a rule', async () => {
  const cases = TABLE.values.flatMap((value) => TABLE.calls.map((call) => ({ call, value })));
  expect(cases.length).toBeGreaterThanOrEqual(40);
  w = await World.start(
    [{ calls: cases.map(({ call, value }) => ({ tool: call.tool, args: put(call.args, value) })) }],
    { config: 'approve = "ask"' },
  );
  const page = await w.page({ width: 1000, height: 900 });
  await send(page, 'Go');
  await ask(page).getByText(`1 of ${cases.length} waiting`).waitFor();
  for (const [n, { call, value }] of cases.entries()) {
    await ask(page)
      .getByText(`${n + 1} of ${cases.length} waiting`)
      .waitFor();
    await ready(page);
    const what = `${call.tool} ${JSON.stringify(value).slice(0, 60)}`;
    expect(await ask(page).getByRole('heading').allInnerTexts(), what).toEqual([call.heading]);
    expect(await ask(page).locator('.Question_why').allInnerTexts(), what).toEqual(
      call.reasons.length ? [`Approval needed: ${call.reasons.join('; ')}.`] : [],
    );
    const rows = await ask(page)
      .locator('dl > div')
      .evaluateAll((all) =>
        all.map((row) => [
          row.querySelector('dt')?.textContent,
          row.querySelector('dd')?.textContent,
        ]),
      );
    expect(
      rows.filter(([name]) => name === 'grants').map(([, words]) => words),
      what,
    ).toEqual(call.access);
    const labels = await ask(page).locator('.buttons button').allInnerTexts();
    expect(
      labels.some((label) =>
        label.includes(call.tool === 'ask_person' ? 'Type an answer' : call.yes),
      ),
      `${what}: ${labels.join()}`,
    ).toBe(true);
    expect(
      labels.some((label) => label.includes('Always')),
      what,
    ).toBe(call.rule !== null);
    if (call.rule !== null) {
      await ask(page)
        .locator('.Question_body')
        .evaluate((el) => el.scrollTo(0, el.scrollHeight));
      await until(
        'it was read',
        async () =>
          (await ask(page)
            .getByRole('button', { name: /Always/ })
            .getAttribute('aria-disabled')) !== 'true',
      );
      await ask(page)
        .getByRole('button', { name: /Always/ })
        .click();
      expect(await ask(page).locator('.Question_more code').first().innerText(), what).toBe(
        call.rule,
      );
      await page.keyboard.press('Escape');
    }
    await ask(page).getByRole('button', { name: 'Next question' }).click();
  }
  // oxlint-disable-next-line no-console -- counted by whoever reads the log
  console.log(`figure: ${cases.length} arguments in the browser`);
}, 600_000);

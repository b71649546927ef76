/** What the browser tests say again and again. */

import type { Page } from 'playwright-core';

export const field = (page: Page) => page.getByRole('textbox', { name: 'What to do next' });
export const ask = (page: Page) => page.locator('.Question_card');
export const conversation = (page: Page) => page.getByRole('region', { name: 'Conversation' });
export const session = (page: Page) => page.url().split('/s/')[1] as string;

/** A question takes keys only when all of it is known, and has been there for a moment. */
export async function ready(page: Page) {
  await page.locator('.Question_card[aria-busy="true"]').waitFor({ state: 'detached' });
  await new Promise((done) => setTimeout(done, 350));
}

export async function send(page: Page, text: string) {
  await field(page).fill(text);
  await field(page).press('Enter');
}

export const said = async (page: Page, text: string | RegExp) =>
  conversation(page).getByText(text).first().waitFor();

/** The work came to its end. */
export const over = async (page: Page) =>
  conversation(page).locator('.Transcript_ending').last().waitFor();

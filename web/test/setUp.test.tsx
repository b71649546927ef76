/** Setting up a model: what is sent, when, and that a key stays out of sight. */

import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { SetUp } from '../src/ui/SetUp';

const KEY = 'sk-typed-0123456789';
const row = (name: string, key: string, about = name) => ({
  name,
  about,
  address: `https://${name}.test/v1`,
  key,
  warning: null,
});
const ROWS = [
  row('ollama', 'not_needed'),
  row('openai', 'missing'),
  row('anthropic', 'saved'),
  row('gemini', 'variable'),
];

type Sent = { path: string; body: unknown; signal: AbortSignal | null };

/** A page whose server answers in this way; `null` is no answer yet. */
function page(answer: (path: string) => unknown, accepts = true) {
  const sent: Sent[] = [];
  const done = vi.fn();
  vi.stubGlobal(
    'fetch',
    vi.fn((path: string, how: RequestInit) => {
      const signal = how.signal ?? null;
      sent.push({ path, body: how.body ? JSON.parse(how.body as string) : null, signal });
      const said =
        path === '/api/providers' ? { providers: ROWS, accepts_keys: accepts } : answer(path);
      if (said === null)
        return new Promise((_, reject) =>
          signal?.addEventListener('abort', () => reject(new Error('aborted'))),
        );
      const headers = { 'content-type': 'application/json' };
      return Promise.resolve(new Response(JSON.stringify(said), { headers }));
    }),
  );
  const client = new QueryClient();
  const view = render(
    <QueryClientProvider client={client}>
      <SetUp done={done} />
    </QueryClientProvider>,
  );
  return { sent, done, view };
}

const models = { models: ['gpt-5.1', 'gpt-5.1-mini'], error: null };
const used = { model: 'openai/gpt-5.1', error: null };
const refused = { error: 'openai refused the key (401)', needs_key: true };

const press = async (name: RegExp) => fireEvent.click(await screen.findByRole('button', { name }));
const type = async (key: string) =>
  fireEvent.change(await screen.findByLabelText('API key'), { target: { value: key } });

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  localStorage.clear();
  sessionStorage.clear();
});

test('provider, key, model: each is sent once, and then it is done', async () => {
  const { sent, done, view } = page((path) => (path.endsWith('/use') ? used : models));
  await press(/openai/);
  const field = await screen.findByLabelText('API key');
  expect(field.getAttribute('type')).toBe('password');
  await type(KEY);
  await press(/Check the key/);
  await press(/Use this model/);
  await waitFor(() => expect(done).toHaveBeenCalledTimes(1));
  expect(sent.map((one) => [one.path, one.body])).toEqual([
    ['/api/providers', null],
    ['/api/providers/models', { provider: 'openai', key: KEY }],
    ['/api/providers/use', { provider: 'openai', key: KEY, model: 'gpt-5.1' }],
  ]);
  expect(view.container.innerHTML).not.toContain(KEY);
  expect(JSON.stringify([{ ...localStorage }, { ...sessionStorage }])).not.toContain(KEY);
});

test('a key that was refused is asked for again', async () => {
  const { done } = page((path) =>
    path.endsWith('/use') ? { model: null, error: refused } : models,
  );
  await press(/openai/);
  await type(KEY);
  await press(/Check the key/);
  await press(/Use this model/);
  expect((await screen.findByRole('alert')).textContent).toContain('refused the key');
  expect((screen.getByLabelText('API key') as HTMLInputElement).value).toBe('');
  expect(done).not.toHaveBeenCalled();
});

test('what is left is aborted, and its answer does not count', async () => {
  const { sent, done, view } = page((path) => (path.endsWith('/use') ? null : models));
  await press(/openai/);
  await type(KEY);
  await press(/Check the key/);
  await press(/Use this model/);
  await waitFor(() => expect(sent).toHaveLength(3));
  await press(/Cancel/);
  expect(sent[2]?.signal?.aborted).toBe(true);
  await press(/Check the key/);
  await press(/Use this model/);
  await waitFor(() => expect(sent).toHaveLength(5));
  view.unmount();
  expect(sent[4]?.signal?.aborted).toBe(true);
  expect(done).not.toHaveBeenCalled();
});

test('a page on another machine gets no field for a key', async () => {
  const { sent } = page(() => models, false);
  await press(/openai/);
  await screen.findByText(/dunnock login openai/);
  expect(screen.queryByLabelText('API key')).toBeNull();
  expect(screen.queryByRole('button', { name: /Check the key/ })).toBeNull();
  expect(sent).toHaveLength(1);
  // A provider that has its key can be used.
  await press(/Back/);
  await press(/anthropic/);
  await press(/Use this model/);
  expect(sent[1]?.body).toEqual({ provider: 'anthropic', key: null });
});

test.each([/ollama/, /gemini/])('%s needs no key', async (name) => {
  const { sent } = page(() => models);
  await press(name);
  await screen.findByRole('button', { name: /Use this model/ });
  expect(sent[1]?.body).toMatchObject({ key: null });
});

test('a saved key can be kept or replaced', async () => {
  const { sent } = page(() => models);
  await press(/anthropic/);
  await press(/Use the saved key/);
  await screen.findByRole('button', { name: /Use this model/ });
  expect(sent[1]?.body).toEqual({ provider: 'anthropic', key: null });
});

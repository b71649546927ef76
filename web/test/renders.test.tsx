/** What a component does not show does not render it again. */

import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, render } from '@testing-library/react';
import { Profiler, type ReactNode } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Overview } from '../src/api.gen';
import { copy, empty, type Session } from '../src/state/fold';
import { set, useStore } from '../src/state/store';
import { App } from '../src/ui/App';
import { Dialogs } from '../src/ui/dialogs';

const rendered = vi.hoisted(() => ({ Start: 0, Composer: 0 }));
vi.mock('../src/ui/Start', () => ({
  Start: () => {
    rendered.Start++;
    return null;
  },
}));
vi.mock('../src/ui/Composer', async (original) => ({
  ...(await original<object>()),
  Composer: () => {
    rendered.Composer++;
    return null;
  },
}));

const first = useStore.getState();
const overview = (): Overview =>
  ({ sessions: [], today: { micros: 0, unknown: false } }) as unknown as Overview;
const opened = (session: Session) => ({
  id: 's',
  session,
  asks: [],
  link: 'up' as const,
  trouble: null,
  error: null,
});

/** The session with one more piece of an answer, as the channel hands it out. */
function longer(session: Session): Session {
  const next = copy(session);
  next.items.push({
    kind: 'note',
    key: `n${next.items.length}`,
    text: `piece ${next.items.length}`,
    tone: 'quiet',
  });
  return next;
}

const show = (children: ReactNode) =>
  render(<QueryClientProvider client={new QueryClient()}>{children}</QueryClientProvider>);

beforeEach(() => {
  vi.stubGlobal('fetch', () => new Promise(() => {})); // no answer is needed here
  set({ ...first, auth: 'signed-in' }, true);
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

test('the start page is not rendered again by sessions elsewhere, toasts or an open session', () => {
  set({ route: { at: 'new' } });
  show(<App />);
  const before = rendered.Start;
  expect(before).toBeGreaterThan(0);
  act(() => set({ overview: overview() }));
  act(() => set({ toasts: [] }));
  act(() => set({ opened: opened(empty('s')) }));
  act(() => set({ opened: opened(longer(empty('s'))) }));
  expect(rendered.Start).toBe(before);
});

test('the input is not rendered again while an answer streams in', () => {
  let session = longer(empty('s'));
  set({ route: { at: 'session', id: 's' }, opened: opened(session) });
  const { container } = show(<App />);
  const before = rendered.Composer;
  expect(before).toBeGreaterThan(0);
  for (let n = 0; n < 5; n++) act(() => set({ opened: opened((session = longer(session))) }));
  expect(container.querySelector('[data-items]')?.getAttribute('data-items')).toBe('6');
  expect(rendered.Composer).toBe(before);
  act(() => set({ opened: opened({ ...session, working: true }) }));
  expect(rendered.Composer).toBe(before + 1);
});

test('a dialog that does not show the session is not rendered again with it', () => {
  let commits = 0;
  set({ dialog: { kind: 'keys' }, opened: opened(empty('s')) });
  show(
    <Profiler id="dialogs" onRender={() => commits++}>
      <Dialogs />
    </Profiler>,
  );
  const before = commits;
  expect(before).toBeGreaterThan(0);
  act(() => set({ opened: opened(longer(empty('s'))) }));
  expect(commits).toBe(before);
});

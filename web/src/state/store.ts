/** The state of the page. Components select from it what they show; `actions.ts` and `open.ts` change it. */

import { create } from 'zustand';
import type { OpenQuestion, OverviewRow, Overview } from '../api.gen';
import type { Session } from './fold';

export type Route =
  { at: 'new'; workspace?: string } | { at: 'all' } | { at: 'session'; id: string };

export type Dialog =
  | { kind: 'search' }
  | { kind: 'keys' }
  | { kind: 'rewind'; seq: number | null }
  | { kind: 'undo' }
  | { kind: 'diff' }
  | { kind: 'rules' }
  | { kind: 'servers' }
  | { kind: 'cost' };

export interface Toast {
  id: number;
  text: string;
  tone: 'plain' | 'bad';
}

/** The session that is open on the page. */
export interface Opened {
  id: string;
  session: Session | null;
  /** Its open questions as the server describes them. */
  asks: OpenQuestion[];
  /** The live channel: not needed, connected, or lost. */
  link: 'rest' | 'up' | 'down';
  /** Why the server closed the channel, if it gave a reason. */
  trouble: string | null;
  error: string | null;
}

export interface State {
  /** Whether this page is signed in. */
  auth: 'checking' | 'signed-in' | 'signed-out';
  why: string;
  /** The server is responding. */
  up: boolean;
  overview: Overview | null;
  route: Route;
  opened: Opened | null;
  dialog: Dialog | null;
  /** On a narrow page: the panel that covers the conversation. */
  drawer: 'list' | 'side' | null;
  toasts: Toast[];
  /** On a wide page: which panels are hidden. */
  folded: { list: boolean; side: boolean };
  /** The user moves through sessions by keys, so the input does not take the focus. */
  walking: boolean;
}

const FOLDED = 'dunnock.folded';

export const useStore = create<State>(() => ({
  auth: 'checking',
  why: '',
  up: true,
  overview: null,
  route: readRoute(),
  opened: null,
  dialog: null,
  drawer: null,
  toasts: [],
  walking: false,
  folded: readFolded(),
}));

export const set = useStore.setState;
export const get = useStore.getState;

/**
 * Selectors of the open session. It is copied for each change, and `total` and `run` are changed in
 * place: select the session itself, or a value that is compared by its content.
 */
export const openSession = (s: State): Session | null => s.opened?.session ?? null;

export function readRoute(): Route {
  const [, where, id] = location.hash.split('/');
  if (where === 's' && id) return { at: 'session', id: decodeURIComponent(id) };
  if (where === 'all') return { at: 'all' };
  if (where === 'new' && id) return { at: 'new', workspace: decodeURIComponent(id) };
  return { at: 'new' };
}

export const addressOf = (route: Route): string =>
  route.at === 'session'
    ? `#/s/${encodeURIComponent(route.id)}`
    : route.at === 'all'
      ? '#/all'
      : route.workspace
        ? `#/new/${encodeURIComponent(route.workspace)}`
        : '#/';

export const go = (route: Route) => {
  location.hash = addressOf(route);
};

function readFolded(): { list: boolean; side: boolean } {
  const kept = localStorage.getItem(FOLDED) ?? '';
  return { list: kept.includes('list'), side: kept.includes('side') };
}

/** Shows or hides a side panel. On a narrow page it opens over the conversation. */
export function fold(side: 'list' | 'side'): void {
  const narrow = window.matchMedia(
    side === 'list' ? '(max-width: 760px)' : '(max-width: 1100px)',
  ).matches;
  if (narrow) return set((s) => ({ drawer: s.drawer === side ? null : side }));
  set((s) => ({ folded: { ...s.folded, [side]: !s.folded[side] } }));
  const { folded } = get();
  localStorage.setItem(FOLDED, `${folded.list ? 'list' : ''} ${folded.side ? 'side' : ''}`);
}

export const isActive = (row: OverviewRow | undefined) =>
  row?.state === 'working' || row?.state === 'waiting';

let toasts = 0;
export function tell(text: string, tone: Toast['tone'] = 'plain'): void {
  const id = ++toasts;
  set((s) => ({ toasts: [...s.toasts.slice(-3), { id, text, tone }] }));
  setTimeout(
    () => set((s) => ({ toasts: s.toasts.filter((t) => t.id !== id) })),
    tone === 'bad' ? 12_000 : 5_000,
  );
}

/** The number of open questions in all sessions, for the badge. */
export const waits = (overview: Overview | null) =>
  (overview?.sessions ?? []).reduce(
    (n, row) => n + (row.state === 'waiting' ? Math.max(1, row.more?.questions.length ?? 1) : 0),
    0,
  );

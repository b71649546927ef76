/** The page: sessions left, the conversation, plan and timeline right; what needs you is in the title of the window. */

import { lazy, Suspense, useEffect } from 'react';
import { branch, stop } from '../state/actions';
import { get, go, set, useStore, waits } from '../state/store';
import icon from '../icon.svg';
import iconWaits from '../icon-waits.svg';
import { firstLine } from '../state/words';
import { Conversation } from './Conversation';
import { List } from './List';
import { Login } from './Login';
import { Start } from './Start';

const All = lazy(() => import('./All').then((m) => ({ default: m.All })));
const Dialogs = lazy(() => import('./dialogs').then((m) => ({ default: m.Dialogs })));

/** The session after this one in the list, or before it. */
function neighbour(by: 1 | -1) {
  const rows = get().overview?.sessions ?? [];
  const { route } = get();
  const at = route.at === 'session' ? rows.findIndex((r) => r.id === route.id) : by === 1 ? -1 : 0;
  const next = rows[(at + by + rows.length) % rows.length];
  if (next) go({ at: 'session', id: next.id });
}

/** Keys that mean something wherever the focus is, unless somebody types. */
function useKeys() {
  useEffect(() => {
    const heard = (e: KeyboardEvent) => {
      if (e.key.toLowerCase() === 'k' && (e.ctrlKey || e.metaKey)) {
        e.preventDefault();
        return set({ dialog: { kind: 'search' } });
      }
      const to = e.target as HTMLElement;
      if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || get().dialog || to.matches('input, textarea, select')) return;
      const session = get().opened?.session;
      const act: Record<string, (() => void) | undefined> = {
        c: () => go({ at: 'new' }),
        o: () => go({ at: 'all' }),
        j: () => neighbour(1),
        k: () => neighbour(-1),
        '/': () => document.getElementById('composer')?.focus(),
        '?': () => set({ dialog: { kind: 'keys' } }),
        u: session ? () => set({ dialog: { kind: 'undo' } }) : undefined,
        r: session ? () => set({ dialog: { kind: 'rewind', seq: null } }) : undefined,
        d: session ? () => set({ dialog: { kind: 'diff' } }) : undefined,
        f: session ? () => void branch(session.id) : undefined,
        Escape: () => (get().drawer ? set({ drawer: null }) : void stop()),
      };
      const does = act[e.key];
      if (does) {
        e.preventDefault();
        does();
      }
    };
    // After those of a question, which come first where one waits.
    window.addEventListener('keydown', heard);
    return () => window.removeEventListener('keydown', heard);
  }, []);
}

/** What waits is seen in the title and on the icon, also when the page is behind others. */
function useTitle() {
  const n = useStore((s) => waits(s.overview));
  const heading = useStore((s) => (s.route.at === 'session' ? firstLine(s.opened?.session?.title ?? '') : ''));
  useEffect(() => {
    document.title = `${n > 0 ? `(${n}) ` : ''}${heading ? `${heading} · ` : ''}Dunnock`;
    document.getElementById('icon')?.setAttribute('href', n > 0 ? iconWaits : icon);
  }, [n, heading]);
  return n;
}

function Toasts() {
  const toasts = useStore((s) => s.toasts);
  return <div className="toasts" role="status" aria-live="polite">{toasts.map((t) => <p key={t.id} className={t.tone}>{t.text}</p>)}</div>;
}

export function App() {
  const { door, route, opened, drawer, up, dialog } = useStore();
  useKeys();
  const n = useTitle();
  if (door === 'opening') return <p className="middle faint" role="status">Opening</p>;
  if (door === 'out') return <Login />;
  return (
    <div className={`app ${route.at === 'session' ? 'three' : ''} ${drawer ? `over-${drawer}` : ''}`}>
      <a className="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById('composer')?.focus(); }}>To the field</a>
      <List />
      {route.at === 'session' && opened ? <Conversation opened={opened} /> : route.at === 'all' ? <Suspense fallback={<main id="main" />}><All /></Suspense> : <Start key={route.at === 'new' ? route.workspace : ''} workspace={route.at === 'new' ? route.workspace : undefined} />}
      {drawer ? <button type="button" className="veil" aria-label="Close" onClick={() => set({ drawer: null })} /> : null}
      {up ? null : <p className="lost" role="alert">The server does not answer. Nothing is lost; this page tries again by itself. If it was ended: <code>dunnock web</code></p>}
      <p className="sr" role="status">{n > 0 ? `${n} waiting` : ''}</p>
      <Toasts />
      {dialog ? <Suspense><Dialogs /></Suspense> : null}
    </div>
  );
}

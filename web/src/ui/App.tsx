/**
 * The page: sessions on the left, the conversation, plan and timeline on the right. The window
 * title shows how many questions are waiting.
 */

import { Component, useEffect, useRef, type ReactNode } from 'react';
import { branch, stop } from '../state/actions';
import { fold, get, go, set, useStore, waits, type State } from '../state/store';
import icon from '../icon.svg';
import iconWaits from '../icon-waits.svg';
import { firstLine } from '../state/words';
import { All } from './All';
import { Conversation } from './Conversation';
import { Dialogs } from './dialogs';
import { List } from './List';
import { Login } from './Login';
import { classes } from './classes';
import { Alone, Button, Wrong } from './parts';
import { Start } from './Start';
import styles from './App.module.css';

/** Error boundary: replaces the page with a message and a reload button. */
class Boundary extends Component<{ children: ReactNode }, { error: string | null }> {
  override state = { error: null as string | null };
  static getDerivedStateFromError(error: unknown) {
    return { error: String(error) };
  }
  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <Alone>
        <h1>Dunnock</h1>
        <Wrong>This page crashed: {this.state.error}. The session is not affected.</Wrong>
        <Button onClick={() => location.reload()}>Reload</Button>
      </Alone>
    );
  }
}

/** Opens the next or previous session in the list. */
function neighbour(by: 1 | -1) {
  const rows = get().overview?.sessions ?? [];
  const { route } = get();
  const at = route.at === 'session' ? rows.findIndex((r) => r.id === route.id) : by === 1 ? -1 : 0;
  const next = rows[(at + by + rows.length) % rows.length];
  set({ walking: true });
  if (next) go({ at: 'session', id: next.id });
}

/** Keys that work wherever the focus is, except while typing. */
function useKeys() {
  useEffect(() => {
    const heard = (e: KeyboardEvent) => {
      if (e.key.toLowerCase() === 'k' && (e.ctrlKey || e.metaKey)) {
        e.preventDefault();
        return set({ dialog: { kind: 'search' } });
      }
      const to = e.target as HTMLElement;
      if (
        e.defaultPrevented ||
        e.repeat ||
        e.ctrlKey ||
        e.metaKey ||
        e.altKey ||
        get().dialog ||
        to.matches('input, textarea, select')
      )
        return;
      const session = get().opened?.session;
      const act: Record<string, (() => void) | undefined> = {
        c: () => go({ at: 'new' }),
        o: () => go({ at: 'all' }),
        j: () => neighbour(1),
        k: () => neighbour(-1),
        '/': () => {
          set({ walking: false });
          document.getElementById('composer')?.focus();
        },
        '[': () => fold('list'),
        ']': () => fold('side'),
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
    // Runs after the handler of an open question, which listens in the capture phase.
    window.addEventListener('keydown', heard);
    return () => window.removeEventListener('keydown', heard);
  }, []);
}

/** Shows waiting questions in the title and the icon, visible even in a background tab. */
function useTitle() {
  const n = useStore((s) => waits(s.overview));
  const heading = useStore((s) =>
    s.route.at === 'session' ? firstLine(s.opened?.session?.title ?? '') : '',
  );
  useEffect(() => {
    document.title = `${n > 0 ? `(${n}) ` : ''}${heading ? `${heading} · ` : ''}Dunnock`;
    document.getElementById('icon')?.setAttribute('href', n > 0 ? iconWaits : icon);
  }, [n, heading]);
  return n;
}

/** Moves the focus into a panel that covers the page, and back when it is closed. */
function useDrawer(drawer: 'list' | 'side' | null) {
  useEffect(() => {
    if (!drawer) return;
    const before = document.activeElement as HTMLElement | null;
    const main = document.getElementById('main');
    main?.setAttribute('inert', '');
    document.querySelector<HTMLElement>(`[data-closes='${drawer}']`)?.focus();
    return () => {
      main?.removeAttribute('inert');
      if (before?.isConnected) before.focus();
    };
  }, [drawer]);
}

function Toasts() {
  const toasts = useStore((s) => s.toasts);
  const ref = useRef<HTMLDivElement>(null);
  // Reopening the popover puts it above everything, including dialogs.
  useEffect(() => {
    const el = ref.current;
    if (!el) return;
    if (el.matches(':popover-open')) el.hidePopover();
    if (toasts.length > 0) el.showPopover();
  }, [toasts]);
  return (
    <div className={styles.toasts} ref={ref} popover="manual" role="status" aria-live="polite">
      {toasts.map((t) => (
        <p key={t.id} className={classes(t.tone === 'bad' && styles.bad)}>
          {t.text}
        </p>
      ))}
    </div>
  );
}

/** How the last task ended, for screen readers. */
function ending(s: State): string {
  const reason = s.opened?.session?.ended?.reason;
  return reason ? `task ended: ${typeof reason === 'string' ? reason : 'failed'}` : '';
}

export function App() {
  const auth = useStore((s) => s.auth);
  const route = useStore((s) => s.route);
  const drawer = useStore((s) => s.drawer);
  const folded = useStore((s) => s.folded);
  const up = useStore((s) => s.up);
  const inSession = useStore((s) => s.route.at === 'session' && s.opened !== null);
  const failed = useStore((s) => Boolean(s.opened?.error));
  const hasDialog = useStore((s) => s.dialog !== null);
  const ended = useStore(ending);
  useDrawer(drawer);
  useKeys();
  const n = useTitle();
  if (auth === 'checking')
    return (
      <p className="centered faint" role="status">
        Opening
      </p>
    );
  if (auth === 'signed-out') return <Login />;
  const withSide = route.at === 'session' && !failed;
  return (
    <Boundary>
      <div
        className={classes(
          styles.app,
          withSide && styles.withSide,
          drawer === 'list' && styles.overList,
          drawer === 'side' && styles.overSide,
          folded.list && styles.noList,
          folded.side && styles.noSide,
        )}
      >
        <a
          className={styles.skip}
          href="#main"
          onClick={(e) => {
            e.preventDefault();
            document.getElementById('composer')?.focus();
          }}
        >
          Skip to the input
        </a>
        <List />
        {inSession ? (
          <Conversation />
        ) : route.at === 'all' ? (
          <All />
        ) : (
          <Start
            key={route.at === 'new' ? route.workspace : ''}
            workspace={route.at === 'new' ? route.workspace : undefined}
          />
        )}
        {drawer ? (
          <button
            type="button"
            className={styles.veil}
            aria-label="Close"
            onClick={() => set({ drawer: null })}
          />
        ) : null}
        {up ? null : (
          <p className={styles.lost} role="alert">
            The server is not responding. Nothing is lost; this page keeps trying. If the server was
            stopped, run <code>dunnock web</code>
          </p>
        )}
        <p className="sr-only" role="status">
          {[n > 0 ? `${n} waiting` : '', ended].filter(Boolean).join('; ')}
        </p>
        <Toasts />
        {hasDialog ? <Dialogs /> : null}
      </div>
    </Boundary>
  );
}

/** Basic components that the others are built from. */

import {
  useLayoutEffect,
  useRef,
  type AnchorHTMLAttributes,
  type ButtonHTMLAttributes,
  type ReactNode,
  type Ref,
} from 'react';
import { fold, set, useStore } from '../state/store';
import type { Tone } from '../state/words';
import { classes } from './classes';
import styles from './parts.module.css';

export const Kbd = ({ children }: { children: ReactNode }) => (
  <kbd aria-hidden="true">{children}</kbd>
);

const KINDS = { go: styles.go, plain: undefined, quiet: styles.quiet, chip: styles.chip };

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  ref?: Ref<HTMLButtonElement>;
  kind?: keyof typeof KINDS;
  k?: string;
};

/** A button; `k` is the key for the same action, shown on the button. */
export function Button({ kind = 'plain', k, children, className, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      className={classes(styles.button, KINDS[kind], className)}
      aria-keyshortcuts={k && k.length === 1 ? k : undefined}
      {...rest}
    >
      {children}
      {k ? <Kbd>{k}</Kbd> : null}
    </button>
  );
}

/** A link that looks like a button. */
export const LinkButton = ({ children, ...rest }: AnchorHTMLAttributes<HTMLAnchorElement>) => (
  <a className={styles.button} {...rest}>
    {children}
  </a>
);

const STATES: Record<string, [string | undefined, string]> = {
  waiting: [styles.ask, 'waiting for you'],
  working: [styles.run, 'running'],
  paused: [styles.warn, 'paused'],
  done: [undefined, 'done'],
  failed: [styles.bad, 'failed'],
  stopped: [undefined, 'stopped'],
  limit: [styles.warn, 'limit reached'],
};

/** The state of a session. Shapes differ too, so that colour is never the only cue. */
export function Dot({ state, decorative = false }: { state: string; decorative?: boolean }) {
  const [tone, name] = STATES[state] ?? [undefined, state];
  const look = classes(styles.dot, tone);
  return decorative ? (
    <span className={look} aria-hidden="true" />
  ) : (
    <span className={look} role="img" aria-label={name} />
  );
}
export const stateName = (state: string) => STATES[state]?.[1] ?? state;

const TONES: Record<Tone, string | undefined> = {
  good: styles.good,
  bad: styles.bad,
  warn: styles.warn,
  quiet: styles.quiet,
  run: styles.run,
};

/** One character that shows a state. Screen readers read its name, or skip it if it has none. */
export function Mark({ tone, name, children }: { tone: Tone; name?: string; children: string }) {
  const look = classes(styles.mark, TONES[tone]);
  return name ? (
    <span className={look} role="img" aria-label={name}>
      {children}
    </span>
  ) : (
    <span className={look} aria-hidden="true">
      {children}
    </span>
  );
}

export const Bird = () => <span className={styles.bird} aria-hidden="true" />;

/** A dialog. It uses the browser's own, which traps the focus and closes on Escape. */
export function Modal({
  title,
  wide,
  children,
  onClose,
}: {
  title: string;
  wide?: boolean;
  children: ReactNode;
  onClose?: () => void;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const close = onClose ?? (() => set({ dialog: null }));
  // Close it before it is unmounted, so that the focus returns to where it was.
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement as HTMLElement | null;
    if (dialog && !dialog.open) dialog.showModal();
    // Focus the first control to use, not the close button.
    dialog?.querySelector<HTMLElement>('[data-first]')?.focus();
    return () => {
      dialog?.close();
      // A field focused while the page is still inert takes no letters, so focus it again: at once,
      // with the layout up to date, because the next frame may come late on a busy machine.
      const again = () => {
        const now = document.activeElement;
        if (!before?.isConnected || (now !== before && now !== document.body)) return;
        before.getBoundingClientRect();
        before.blur();
        before.focus();
      };
      again();
      requestAnimationFrame(again);
    };
  }, []);
  return (
    // A click outside closes it; the browser handles Escape.
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions -- see above
    <dialog
      ref={ref}
      className={classes(styles.dialog, wide && styles.wide)}
      aria-label={title}
      onCancel={close}
      onClick={(e) => e.target === ref.current && close()}
    >
      <div className={styles.sheet}>
        <header className={styles.title}>
          <h2>{title}</h2>
          <Button kind="quiet" onClick={close} k="esc">
            Close
          </Button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** The button that shows or hides a side panel. */
export function Fold({ side }: { side: 'list' | 'side' }) {
  const folded = useStore((s) => s.folded[side]);
  const name = side === 'list' ? 'Session list' : 'Timeline';
  return (
    <Button
      kind="quiet"
      onClick={() => fold(side)}
      aria-label={side === 'list' ? name : undefined}
      aria-pressed={!folded}
      title={`${name}: ${side === 'list' ? '[' : ']'}`}
    >
      {side === 'list' ? '☰' : 'Timeline'}
    </Button>
  );
}

/** The bar at the top of the page. */
export const TopBar = ({ children }: { children: ReactNode }) => (
  <header className={styles.top}>
    <Fold side="list" />
    {children}
  </header>
);

/** What fills the height that the top bar and the input leave. */
export const Fill = ({ children }: { children: ReactNode }) => (
  <div className={styles.fill}>{children}</div>
);

/** A page without panels. */
export const Alone = ({ children }: { children: ReactNode }) => (
  <main className={styles.alone} id="main">
    {children}
  </main>
);

/** A placeholder for an empty list. */
export const Empty = ({ children, id }: { children: ReactNode; id?: string }) => (
  <p className={styles.empty} id={id}>
    {children}
  </p>
);

/** An error message, shown where the error happened. */
export const Wrong = ({ children }: { children: ReactNode }) => (
  <p className="wrong" role="alert">
    {children}
  </p>
);

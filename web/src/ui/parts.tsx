/** Basic components that the others are built from. */

import { useLayoutEffect, useRef, type ButtonHTMLAttributes, type ReactNode, type Ref } from 'react';
import { fold, set, useStore } from '../state/store';

export const Kbd = ({ children }: { children: ReactNode }) => <kbd aria-hidden="true">{children}</kbd>;

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { ref?: Ref<HTMLButtonElement>; kind?: 'go' | 'plain' | 'quiet' | 'chip'; k?: string };

/** A button; `k` is the key for the same action, shown on the button. */
export function Button({ kind = 'plain', k, children, className = '', ...rest }: ButtonProps) {
  return (
    <button type="button" className={`btn ${kind} ${className}`} aria-keyshortcuts={k && k.length === 1 ? k : undefined} {...rest}>
      {children}
      {k ? <Kbd>{k}</Kbd> : null}
    </button>
  );
}

const STATES: Record<string, [string, string]> = {
  waiting: ['ask', 'waiting for you'],
  working: ['run', 'running'],
  done: ['', 'done'],
  failed: ['bad', 'failed'],
  stopped: ['', 'stopped'],
  limit: ['warn', 'limit reached'],
};

/** The state of a session. Shapes differ too, so that colour is never the only cue. */
export function Dot({ state }: { state: string }) {
  const [tone, name] = STATES[state] ?? ['', state];
  return <span className={`dot ${tone}`} role="img" aria-label={name} />;
}
export const stateName = (state: string) => STATES[state]?.[1] ?? state;

/** A dialog. It uses the browser's own, which traps the focus and closes on Escape. */
export function Modal({ title, wide, children, onClose }: { title: string; wide?: boolean; children: ReactNode; onClose?: () => void }) {
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
      // A field focused while the page is still inert gets no caret, so focus it again.
      requestAnimationFrame(() => {
        const now = document.activeElement;
        if (!before?.isConnected || (now !== before && now !== document.body)) return;
        before.blur();
        before.focus();
      });
    };
  }, []);
  return (
    // A click outside closes it; the browser handles Escape.
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions -- see above
    <dialog ref={ref} className={wide ? 'wide' : undefined} aria-label={title} onCancel={close} onClick={(e) => e.target === ref.current && close()}>
      <div className="sheet">
        <header className="bar">
          <h2>{title}</h2>
          <Button kind="quiet" onClick={close} k="esc">Close</Button>
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
    <Button kind="quiet" className={`to-${side}`} onClick={() => fold(side)} aria-label={side === 'list' ? name : undefined} aria-pressed={!folded} title={`${name}: ${side === 'list' ? '[' : ']'}`}>
      {side === 'list' ? '☰' : 'Timeline'}
    </Button>
  );
}

/** A placeholder for an empty list. */
export const Empty = ({ children }: { children: ReactNode }) => <p className="empty">{children}</p>;

/** An error message, shown where the error happened. */
export const Wrong = ({ children }: { children: ReactNode }) => <p className="wrong" role="alert">{children}</p>;

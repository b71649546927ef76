/**
 * An open question: why you are asked, what exactly would happen, what it affects and whether it
 * can be undone. One key answers.
 *
 * Nothing can be approved before all of it was on the screen. Keys and clicks meant for something
 * else do not count: they are ignored for a moment after the question appears, after it changes,
 * and after each key that came too early. A key that is followed by another one is the beginning of
 * a message: both go to the input.
 */

import {
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type KeyboardEvent as Press,
} from 'react';
import type { OpenQuestion } from '../api.gen';
import { always, reply } from '../state/actions';
import {
  firstStage,
  GUARD,
  isAnswer,
  key,
  shown,
  type Outcome,
  type Shown,
  type Stage,
  WAIT,
} from '../state/ask';
import { tell } from '../state/store';
import { visible } from '../text/safe';
import { classes } from './classes';
import { signed } from './Diff';
import { Button, Mark } from './parts';
import styles from './Question.module.css';

interface Props {
  session: string;
  workspace: string;
  checkpoints: boolean;
  asks: (OpenQuestion & { pending?: boolean })[];
  /**
   * Takes keys wherever the focus is, except while typing or when another question has the focus.
   */
  main?: boolean;
}

/** The questions of a session, one at a time. */
export function Questions({ session, workspace, checkpoints, asks, main = false }: Props) {
  const [at, setAt] = useState<number | null>(null);
  const index = Math.max(
    0,
    asks.findIndex((a) => a.id === at),
  );
  const one = asks[index];
  if (!one) return null;
  const other = (by: number) => setAt(asks[(index + by + asks.length) % asks.length]?.id ?? null);
  const q = shown(one, { workspace, checkpoints, session });
  return (
    <Card
      key={one.hash}
      q={q}
      session={session}
      workspace={workspace}
      place={`${index + 1} of ${asks.length}`}
      many={asks.length > 1}
      other={other}
      main={main}
    />
  );
}

/** Any question on the page. */
const QUESTION = 'section[data-hash]';
const TYPING = 'input, textarea, select, [contenteditable]';
const SCROLL: Record<string, number> = {
  ArrowUp: -40,
  ArrowDown: 40,
  PageUp: -0.9,
  PageDown: 0.9,
  ' ': 0.9,
};

/** Types into the input. It is controlled by React, which sees only what the browser reports. */
function insert(field: HTMLTextAreaElement, text: string): void {
  field.focus();
  const set = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value')?.set;
  set?.call(field, field.value + text);
  field.dispatchEvent(new Event('input', { bubbles: true }));
}

/** Exactly what would run: every line, wrapped, in the same scroll area as the rest. */
function Exact({ q }: { q: Shown }) {
  if (q.kind !== 'approval' || !q.isChange)
    return (
      <pre className={classes(styles.exact, q.kind !== 'approval' && styles.words)}>
        {q.exact.join('\n')}
      </pre>
    );
  return (
    <div className={classes(styles.exact, styles.change)}>
      {signed(q.exact).map((line, n) => (
        <div
          key={n}
          className={classes(
            styles.line,
            line.kind === 'add' && styles.add,
            line.kind === 'del' && styles.del,
            line.kind === 'file' && styles.file,
          )}
        >
          <span
            className={styles.sign}
            role={line.kind === 'add' || line.kind === 'del' ? 'img' : undefined}
            aria-label={line.kind === 'add' ? 'added' : line.kind === 'del' ? 'removed' : undefined}
          >
            {line.kind === 'add'
              ? '+'
              : line.kind === 'del'
                ? '−'
                : line.kind === 'file'
                  ? ''
                  : ' '}
          </span>
          <span>{line.text}</span>
        </div>
      ))}
    </div>
  );
}

function Card({
  q,
  session,
  workspace,
  place,
  many,
  other,
  main,
}: {
  q: Shown;
  session: string;
  workspace: string;
  place: string;
  many: boolean;
  other: (by: number) => void;
  main: boolean;
}) {
  const [stage, setStage] = useState<Stage>(firstStage(q));
  const [words, setWords] = useState('');
  const [read, setRead] = useState(false);
  const [busy, setBusy] = useState(false);
  /** An answer key that has not taken effect yet. */
  const [pressed, setPressed] = useState<string | null>(null);
  const card = useRef<HTMLElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const end = useRef<HTMLSpanElement>(null);
  const since = useRef(0);
  /** When a letter was last typed that is no answer, and when the current stage began. */
  const typing = useRef(0);
  const opened = useRef(0);
  /** Details from the server. If they change, the question has to be read again. */
  const known = `${q.rows.map((row) => row.value).join()} ${q.rule?.words ?? ''} ${String(main)} ${String(q.pending)}`;

  // A yes requires that the end of the current text was on the screen.
  useEffect(() => {
    const mark = end.current;
    since.current = Date.now();
    // oxlint-disable-next-line react/set-state-in-effect -- a changed text must be read again
    setRead(false);
    setPressed(null);
    if (!mark) return;
    const seen = new IntersectionObserver(
      (all) => all.some((e) => e.isIntersecting) && setRead(true),
      { root: body.current, threshold: 0 },
    );
    seen.observe(mark);
    return () => seen.disconnect();
  }, [known]);

  // Take the focus, unless the user is typing or the focus is in another panel.
  useEffect(() => {
    const typed = document.activeElement as HTMLTextAreaElement | null;
    const elsewhere = typed?.closest(`${QUESTION}, aside, nav, dialog`);
    if (
      main &&
      !elsewhere &&
      !document.querySelector('dialog[open]') &&
      !(typed?.matches(TYPING) && (typed.value || typed.id !== 'composer'))
    )
      card.current?.focus();
  }, [main]);

  const act = useCallback(
    async (outcome: Outcome) => {
      if (!outcome) return;
      if ('stage' in outcome) {
        opened.current = Date.now();
        setStage(outcome.stage);
        card.current?.focus();
        return;
      }
      if ('hint' in outcome) return tell(outcome.hint);
      if ('other' in outcome) return other(outcome.other);
      setBusy(true);
      const done =
        'saves' in outcome
          ? await always(
              session,
              q,
              outcome.saves,
              outcome.scope === 'project' ? workspace : undefined,
            )
          : await reply(session, q, outcome.answer, outcome.note);
      if (!done) setBusy(false);
    },
    [other, q, session, workspace],
  );

  /** Whether it is too early to accept input. */
  const early = useCallback(() => busy || Date.now() - since.current < GUARD, [busy]);

  const press = useCallback(
    (name: string): boolean => {
      const outcome = key(q, stage, name, read);
      if (early()) {
        since.current = Date.now(); // the user is typing: restart the guard time
        return outcome !== null;
      }
      if (outcome) void act(outcome);
      return outcome !== null;
    },
    [act, early, q, read, stage],
  );

  const takeEffect = useCallback(() => {
    setPressed(null);
    if (pressed !== null) press(pressed);
  }, [press, pressed]);
  // The timer must not start again when something else changes.
  const effect = useRef(takeEffect);
  useLayoutEffect(() => {
    effect.current = takeEffect;
  }, [takeEffect]);
  useEffect(() => {
    if (pressed === null) return;
    const drop = () => setPressed(null);
    const act = () => {
      const at = document.activeElement;
      if (at?.matches(TYPING) || document.querySelector('dialog[open]')) drop();
      else effect.current();
    };
    // Keys that came while the page was busy are handled before the second timer.
    let timer = setTimeout(() => {
      timer = setTimeout(act, 0);
    }, WAIT);
    window.addEventListener('pointerdown', drop, true);
    window.addEventListener('focusin', drop);
    return () => {
      clearTimeout(timer);
      window.removeEventListener('pointerdown', drop, true);
      window.removeEventListener('focusin', drop);
    };
  }, [pressed]);

  // A layout effect, so that the handler always matches what is on the screen.
  useLayoutEffect(() => {
    const heard = (e: KeyboardEvent) => {
      const to = e.target as HTMLElement;
      // A key goes to the question with the focus; the main one takes keys outside any question.
      const covered = card.current?.closest('[inert]');
      const mine = !covered && (card.current?.contains(to) || (main && !to.closest(QUESTION)));
      // Any other key ends the wait of the one before it.
      const before = e.repeat || e.key === 'Shift' ? null : pressed;
      if (before !== null) setPressed(null);
      if (e.key === 'Shift') return;
      if (
        !mine ||
        e.defaultPrevented ||
        e.repeat ||
        e.ctrlKey ||
        e.metaKey ||
        e.altKey ||
        to.matches(TYPING) ||
        document.querySelector('dialog[open]')
      )
        return;
      const take = () => {
        e.preventDefault();
        e.stopPropagation();
      };
      const field = document.getElementById('composer') as HTMLTextAreaElement | null;
      const letter = e.key.length === 1 && e.key !== ' ';
      if (before !== null) {
        if (e.key === 'Enter') {
          press(before);
          return take();
        }
        if (e.key === 'Escape' || e.key === 'Backspace') return take();
        if (e.key.length === 1) {
          typing.current = Date.now();
          if (main && field) {
            insert(field, before + e.key);
            setStage(firstStage(q));
          }
          return take();
        }
      }
      // What the key before it opened is not confirmed by the same stroke.
      if (e.key === 'Enter' && stage === 'always' && Date.now() - opened.current < WAIT)
        return take();
      if ((e.key === 'Enter' || e.key === ' ') && to.matches('button, a, summary')) return;
      // A letter typed while the question appeared belongs to the input.
      if (e.key.length === 1 && main && field && early()) {
        since.current = Date.now();
        field.focus(); // the browser inserts the letter there
        return e.stopPropagation();
      }
      // Where there is no input, somebody who types is still not answering.
      const types = Date.now() - typing.current < WAIT;
      if (isAnswer(q, stage, e.key) && !early() && !types) {
        setPressed(e.key);
        return take();
      }
      // Any other letter begins a message.
      if (letter) typing.current = Date.now();
      if (letter && main && field && !to.closest('aside, nav')) {
        insert(field, e.key);
        setStage(firstStage(q));
        return take();
      }
      if (letter && types) return take();
      const by = SCROLL[e.key];
      if (by !== undefined && stage !== 'note' && stage !== 'words') {
        body.current?.scrollBy({
          top: Math.abs(by) < 1 ? by * (body.current.clientHeight || 1) : by,
        });
        return e.preventDefault();
      }
      if (!many && (e.key === 'ArrowLeft' || e.key === 'ArrowRight')) return;
      if (press(e.key)) take();
    };
    // Runs before the page's keys: here Escape goes back one stage, there it stops the task.
    window.addEventListener('keydown', heard, true);
    return () => window.removeEventListener('keydown', heard, true);
  }, [early, main, many, press, pressed, q, stage]);

  const send = () => {
    if (early()) return;
    void act(
      stage === 'note'
        ? { answer: 'no', note: words.trim() }
        : words.trim()
          ? { answer: { text: { text: words.trim() } } }
          : null,
    );
  };
  const typed = (e: Press<HTMLTextAreaElement>) => {
    if (e.nativeEvent.isComposing) return;
    if (e.key === 'Enter' && !e.shiftKey) {
      e.preventDefault();
      if (words || Date.now() - opened.current > WAIT) send();
    } else if (e.key === 'Escape') {
      e.preventDefault();
      setStage(firstStage(q));
      card.current?.focus();
    }
  };
  const go = (name: string) => () => void press(name);
  const label = `question-${session}-${q.id}`;
  const waits =
    pressed === null ? null : (
      <span className="faint" role="status">
        {`“${pressed}” in a moment · enter: now · esc: take it back`}
      </span>
    );
  // Focus the field only if a key or click led here; never take the caret from another field.
  const field = (el: HTMLTextAreaElement | null) => {
    const at = document.activeElement;
    if (el && (stage === 'note' || card.current?.contains(at) || at === document.body)) el.focus();
  };

  return (
    <section
      className={styles.card}
      ref={card}
      tabIndex={-1}
      aria-labelledby={label}
      aria-busy={q.pending}
      data-hash={q.hash}
    >
      <header>
        <Mark tone="warn">?</Mark>
        <h2 id={label}>{q.heading}</h2>
        {many ? (
          <span className={styles.place}>
            <Button kind="quiet" onClick={() => other(-1)} aria-label="Previous question">
              ←
            </Button>
            {place} waiting
            <Button kind="quiet" onClick={() => other(1)} aria-label="Next question">
              →
            </Button>
          </span>
        ) : null}
      </header>
      {q.reasons.length > 0 ? (
        <p className={styles.why}>Approval needed: {q.reasons.join('; ')}.</p>
      ) : null}
      <div
        className={styles.body}
        ref={body}
        tabIndex={0}
        role="group"
        aria-label="What would happen"
      >
        <Exact q={q} />
        {q.careful.map((text) => (
          <p className={styles.careful} key={text}>
            Careful: {visible(text)}
          </p>
        ))}
        {q.rows.length > 0 ? (
          <dl>
            {q.rows.map((row, n) => (
              <div key={n}>
                <dt>{row.name}</dt>
                <dd>{row.value}</dd>
              </div>
            ))}
          </dl>
        ) : null}
        {stage === 'explain' ? (
          <div className={styles.explain} role="status">
            {q.explain.map((line, n) => (
              <p key={n}>{line}</p>
            ))}
          </div>
        ) : null}
        <span ref={end} className={styles.end} aria-hidden="true" />
      </div>
      {stage === 'always' && q.rule ? (
        <div className={styles.more} role="status">
          <p>
            Always allow: <code>{q.rule.words}</code>
          </p>
          <p>
            This project: <code>{visible(workspace)}</code> and the folders in it
          </p>
          <p className="faint">{q.rule.note}</p>
          <div className="buttons">
            <Button kind="go" k="enter" disabled={busy} onClick={go('Enter')}>
              In this project
            </Button>
            <Button k="g" disabled={busy} onClick={go('g')}>
              In all projects
            </Button>
            <Button k="s" disabled={busy} onClick={go('s')}>
              In this session only
            </Button>
            <Button kind="quiet" k="esc" onClick={() => setStage('choose')}>
              Back
            </Button>
            {waits}
          </div>
        </div>
      ) : stage === 'note' || stage === 'words' ? (
        <div className={styles.more}>
          <textarea
            ref={field}
            aria-label={stage === 'note' ? 'Reason, or what to do instead' : 'Your answer'}
            rows={2}
            value={words}
            placeholder={
              stage === 'note' ? 'Reason, or what to do instead (sent to the model)' : 'Your answer'
            }
            onChange={(e) => setWords(e.target.value)}
            onKeyDown={typed}
          />
          <div className="buttons">
            <Button kind="go" k="enter" disabled={busy} onClick={send}>
              {stage === 'note' ? 'Decline with this note' : 'Answer'}
            </Button>
            {q.kind === 'person' && q.choices.length === 0 ? null : (
              <Button kind="quiet" k="esc" onClick={() => setStage('choose')}>
                Back
              </Button>
            )}
          </div>
        </div>
      ) : (
        <div className={classes('buttons', styles.answers)}>
          {q.kind === 'person' ? (
            <>
              {q.choices.map((choice, n) => (
                <Button
                  key={choice}
                  k={n < 9 ? String(n + 1) : undefined}
                  disabled={busy}
                  aria-disabled={!read}
                  onClick={() =>
                    n < 9
                      ? press(String(n + 1))
                      : !early() && read && void act({ answer: { text: { text: choice } } })
                  }
                >
                  {visible(choice)}
                </Button>
              ))}
              <Button kind="quiet" k="t" onClick={go('t')}>
                Type an answer
              </Button>
            </>
          ) : q.kind === 'approval' ? (
            <>
              <Button kind="go" k="y" disabled={busy} aria-disabled={!read} onClick={go('y')}>
                {q.yes}
              </Button>
              <Button k="n" disabled={busy} onClick={go('n')}>
                {q.no}
              </Button>
              <Button k="t" onClick={go('t')}>
                Decline with a note
              </Button>
              {q.rule ? (
                <Button k="a" aria-disabled={!read} onClick={go('a')}>
                  Always …
                </Button>
              ) : null}
              {q.wider ? (
                <Button k="w" disabled={busy} aria-disabled={!read} onClick={go('w')}>
                  Allow the whole network once
                </Button>
              ) : null}
              <Button kind="quiet" k="e" onClick={go('e')}>
                Explain
              </Button>
            </>
          ) : (
            <>
              <Button kind="go" k="y" disabled={busy} aria-disabled={!read} onClick={go('y')}>
                {q.yes}
              </Button>
              <Button k="n" disabled={busy} onClick={go('n')}>
                {q.no}
              </Button>
            </>
          )}
          {waits ? (
            waits
          ) : q.pending ? (
            <span className="faint">loading the question …</span>
          ) : read ? null : (
            <span className="faint">scroll to the end first</span>
          )}
        </div>
      )}
    </section>
  );
}

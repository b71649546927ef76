/** A question that waits: why it is asked, what exactly would happen, what it touches, whether it can be undone. One key answers. */

import { useCallback, useEffect, useRef, useState, type KeyboardEvent as Press } from 'react';
import type { Asks } from '../api.gen';
import { everywhere, reply } from '../state/actions';
import { firstStage, GUARD, key, shown, type Outcome, type Shown, type Stage } from '../state/ask';
import { tell } from '../state/store';
import { visible } from '../text/safe';
import { Lines, signed } from './Diff';
import { Button } from './parts';

interface Props {
  session: string;
  workspace: string;
  checkpoints: boolean;
  asks: Asks[];
  /** It takes the keys wherever the focus is, unless somebody types. */
  main?: boolean;
}

/** The questions of a session, one at a time. */
export function Questions({ session, workspace, checkpoints, asks, main = false }: Props) {
  const [at, setAt] = useState<number | null>(null);
  const index = Math.max(0, asks.findIndex((a) => a.id === at));
  const one = asks[index];
  if (!one) return null;
  const other = (by: number) => setAt(asks[(index + by + asks.length) % asks.length]?.id ?? null);
  const q = shown(one, { workspace, checkpoints, session });
  return <Card key={one.hash} q={q} session={session} place={`${index + 1} of ${asks.length}`} many={asks.length > 1} other={other} main={main} />;
}

const TYPING = 'input, textarea, select, [contenteditable]';

function Card({ q, session, place, many, other, main }: { q: Shown; session: string; place: string; many: boolean; other: (by: number) => void; main: boolean }) {
  const [stage, setStage] = useState<Stage>(firstStage(q));
  const [words, setWords] = useState('');
  const [read, setRead] = useState(false);
  const [busy, setBusy] = useState(false);
  const card = useRef<HTMLElement>(null);
  const end = useRef<HTMLSpanElement>(null);
  const since = useRef(Date.now());

  // Whoever says yes has seen all of it.
  useEffect(() => {
    const mark = end.current;
    if (!mark) return;
    const seen = new IntersectionObserver((all) => all.some((e) => e.isIntersecting) && setRead(true), { threshold: 0 });
    seen.observe(mark);
    return () => seen.disconnect();
  }, []);

  // It comes into focus, unless somebody types.
  useEffect(() => {
    const typed = document.activeElement as HTMLTextAreaElement | null;
    if (main && !document.querySelector('dialog[open]') && !(typed?.matches(TYPING) && typed.value)) card.current?.focus();
  }, [main]);

  const act = useCallback(async (outcome: Outcome) => {
    if (!outcome) return;
    if ('stage' in outcome) return setStage(outcome.stage);
    if ('hint' in outcome) return tell(outcome.hint);
    if ('other' in outcome) return other(outcome.other);
    setBusy(true);
    const done = 'everywhere' in outcome ? await everywhere(session, q, outcome.everywhere) : await reply(session, q, outcome.answer, outcome.note);
    if (!done) setBusy(false);
  }, [other, q, session]);

  const press = useCallback((name: string): boolean => {
    // What was typed for something else must not answer.
    if (busy || Date.now() - since.current < GUARD) return false;
    const outcome = key(q, stage, name, read);
    if (outcome) void act(outcome);
    return outcome !== null;
  }, [act, busy, q, read, stage]);

  useEffect(() => {
    if (!main) return;
    const heard = (e: KeyboardEvent) => {
      const to = e.target as HTMLElement;
      if (e.defaultPrevented || e.repeat || e.ctrlKey || e.metaKey || e.altKey || to.matches(TYPING) || document.querySelector('dialog[open]')) return;
      if (e.key === 'Enter' && to.matches('button, a, summary')) return;
      if (press(e.key)) e.preventDefault();
    };
    // Before the keys of the page: here Escape goes a step back, there it stops the work.
    window.addEventListener('keydown', heard, true);
    return () => window.removeEventListener('keydown', heard, true);
  }, [main, press]);

  const send = () => void act(stage === 'note' ? { answer: 'no', note: words.trim() } : words.trim() ? { answer: { text: { text: words.trim() } } } : null);
  const typed = (e: Press<HTMLTextAreaElement>) => {
    if (e.key === 'Enter' && !e.shiftKey && !e.nativeEvent.isComposing) {
      e.preventDefault();
      send();
    } else if (e.key === 'Escape') {
      e.preventDefault();
      setStage(firstStage(q));
      card.current?.focus();
    }
  };
  const go = (name: string) => () => void press(name);
  const label = `question-${session}-${q.id}`;

  return (
    <section className="ask" ref={card} tabIndex={-1} aria-labelledby={label} data-hash={q.hash}>
      <header>
        <span className="mark warn" aria-hidden="true">?</span>
        <h2 id={label}>{q.title}</h2>
        {many ? (
          <span className="place">
            <Button kind="quiet" onClick={() => other(-1)} aria-label="The question before">←</Button>
            {place} waits
            <Button kind="quiet" onClick={() => other(1)} aria-label="The next question">→</Button>
          </span>
        ) : null}
      </header>
      {q.why ? <p className="why">It asks because {q.why}.</p> : null}
      <div className="body" tabIndex={0} role="region" aria-label="What would happen">
        {q.kind === 'approval' && q.isChange ? <Lines lines={signed(q.exact)} path="" /> : <pre className={q.kind === 'approval' ? 'exact' : 'exact words'}>{q.exact.join('\n')}</pre>}
        {q.careful.map((text) => <p className="careful" key={text}>Careful: {visible(text)}</p>)}
        {q.rows.length > 0 ? <dl>{q.rows.map((row, n) => <div key={n}><dt>{row.name}</dt><dd>{row.value}</dd></div>)}</dl> : null}
        {stage === 'explain' ? <div className="explain">{q.explain.map((line, n) => <p key={n}>{line}</p>)}</div> : null}
        <span ref={end} className="end" aria-hidden="true" />
      </div>
      {stage === 'always' && q.rule ? (
        <div className="rule">
          <p>Always allow: <code>{q.rule.words}</code></p>
          <p className="faint">It counts by parsed words, not by the look of the text; not with ; &amp;&amp; | $( ) or other options.</p>
          <div className="btns">
            <Button kind="go" k="enter" disabled={busy} onClick={() => void act({ everywhere: q.rule!.rule })}>In every session</Button>
            <Button k="s" disabled={busy} onClick={() => void act({ answer: { always: { rule: q.rule!.rule } } })}>In this session</Button>
            <Button kind="quiet" k="esc" onClick={() => setStage('choose')}>Back</Button>
          </div>
        </div>
      ) : stage === 'note' || stage === 'words' ? (
        <div className="rule">
          <textarea
            aria-label={stage === 'note' ? 'Why not, or what to do instead' : 'Your answer'} rows={2} value={words} autoFocus
            placeholder={stage === 'note' ? 'Why not, or what to do instead: the model is told' : 'Your answer'}
            onChange={(e) => setWords(e.target.value)} onKeyDown={typed}
          />
          <div className="btns">
            <Button kind="go" k="enter" disabled={busy} onClick={send}>{stage === 'note' ? 'Decline with this note' : 'Answer'}</Button>
            {q.kind === 'person' && q.choices.length === 0 ? null : <Button kind="quiet" k="esc" onClick={() => setStage('choose')}>Back</Button>}
          </div>
        </div>
      ) : (
        <div className="btns">
          {q.kind === 'person' ? (
            <>
              {q.choices.map((choice, n) => <Button key={choice} k={String(n + 1)} disabled={busy || !read} onClick={() => void act({ answer: { text: { text: choice } } })}>{visible(choice)}</Button>)}
              <Button kind="quiet" k="t" onClick={() => setStage('words')}>Other words</Button>
            </>
          ) : q.kind === 'approval' ? (
            <>
              <Button kind="go" k="y" disabled={busy} aria-disabled={!read} onClick={go('y')}>Run once</Button>
              <Button k="n" disabled={busy} onClick={go('n')}>Decline</Button>
              <Button k="t" onClick={go('t')}>Decline with a note</Button>
              {q.rule ? <Button k="a" onClick={go('a')}>Always …</Button> : null}
              <Button kind="quiet" k="e" onClick={go('e')}>Explain</Button>
            </>
          ) : (
            <>
              <Button kind="go" k="y" disabled={busy} onClick={go('y')}>Yes</Button>
              <Button k="n" disabled={busy} onClick={go('n')}>No</Button>
            </>
          )}
          {read ? null : <span className="faint">read it to its end first</span>}
        </div>
      )}
    </section>
  );
}

/** The conversation. Only visible rows are rendered, however long it is. */

import { useVirtualizer } from '@tanstack/react-virtual';
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { copyText } from '../state/actions';
import { isShown, type Item, type Session } from '../state/fold';
import { firstLine, furtherParts } from '../state/words';
import { Markdown } from '../text/markdown';
import { prose, visible } from '../text/safe';
import { Call } from './Call';
import { classes } from './classes';
import { Button, Fill } from './parts';
import { Pictures } from './Picture';
import styles from './Transcript.module.css';

function Thought({ text, live }: { text: string; live: boolean }) {
  const [open, setOpen] = useState(false);
  return (
    <div className={styles.thought}>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        {live ? 'Thinking' : 'Thought'}:{' '}
        {firstLine(live ? (text.trimEnd().split('\n').pop() ?? '') : text)}
      </button>
      {open ? <p>{visible(text)}</p> : null}
    </div>
  );
}

/** A path to select or copy. */
function Path({ path, name }: { path: string; name: string }) {
  return (
    <>
      <code>{visible(path)}</code>{' '}
      <Button
        kind="quiet"
        onClick={() => void copyText(path)}
        aria-label={`Copy the path of ${name}`}
      >
        Copy
      </Button>
    </>
  );
}

const Row = memo(function Row({ item, session }: { item: Item; session: string }) {
  switch (item.kind) {
    case 'prompt':
      return (
        <div className={styles.prompt} dir="auto">
          <span className="sr-only">You: </span>
          {prose(item.text)}
          <Pictures session={session} images={item.images} alt="attached to this prompt" />
        </div>
      );
    case 'thought':
      return <Thought text={item.text} live={item.live} />;
    case 'text':
      return (
        <div className={styles.answer}>
          <Markdown source={item.text} live={item.live} />
          {item.live ? null : (
            <Button
              kind="quiet"
              className={styles.copy}
              onClick={() => void copyText(item.text)}
              aria-label="Copy this answer"
            >
              Copy
            </Button>
          )}
        </div>
      );
    case 'call':
      return <Call call={item} session={session} />;
    case 'note':
      return (
        <p className={classes(styles.note, item.tone === 'bad' && styles.bad)}>
          {visible(item.text)}
        </p>
      );
    case 'outbox':
      return (
        <div className={classes(styles.outbox, item.open && styles.open)}>
          <p>
            Paste <Path path={item.outbox} name="the request" />
            {furtherParts(item.parts)} into your chat
          </p>
          <p>
            and save its answer as <Path path={item.inbox} name="the answer" />
          </p>
        </div>
      );
    case 'reply':
      return (
        <p className={styles.note}>
          <span className="warn">?</span> {visible(item.text)} <b>{visible(item.said)}</b>
          {item.note ? ` (${visible(item.note)})` : ''}
        </p>
      );
    case 'end':
      return (
        <div className={styles.ending}>
          {item.error ? <p className="wrong">{visible(item.error)}</p> : null}
          <p>
            <b className={item.tone}>{item.word}</b>
            {item.checks.map((c) => (
              <span key={c.command} className={styles.check}>
                <code>{visible(c.command)}</code>{' '}
                {c.passed === null ? 'not run' : c.passed ? 'passed' : 'failed'}
              </span>
            ))}
          </p>
          <p className={classes('faint', styles.closing)}>{item.closing}</p>
        </div>
      );
  }
});

export const Transcript = memo(function Transcript({ session }: { session: Session }) {
  const scroller = useRef<HTMLDivElement>(null);
  const pinned = useRef(true);
  const [away, setAway] = useState(false);
  const items = useMemo(
    () => session.items.filter((item) => item.kind !== 'call' || isShown(item)),
    [session.items],
  );
  // oxlint-disable-next-line react/incompatible-library -- the React compiler is not used
  const list = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: (n) => (items[n]?.kind === 'call' ? 46 : 60),
    getItemKey: (n) => items[n]?.key ?? n,
    overscan: 6,
    useFlushSync: false,

    gap: 16,
    paddingStart: 24,
    paddingEnd: 24,
  });
  const height = list.getTotalSize();
  const down = useCallback(() => {
    const el = scroller.current;
    if (el) el.scrollTop = el.scrollHeight;
  }, []);
  // Follow new content at the end; keep the position of a user who has scrolled up.
  useLayoutEffect(() => {
    if (pinned.current) down();
  }, [height, items, down]);
  useEffect(() => {
    const el = scroller.current;
    if (!el) return;
    // A question or a taller input takes space: keep the end visible.
    const sized = new ResizeObserver(() => pinned.current && down());
    sized.observe(el);
    return () => sized.disconnect();
  }, [down]);
  const last = useRef(0);
  const scrolled = () => {
    const el = scroller.current;
    if (!el) return;
    const left = el.scrollHeight - el.scrollTop - el.clientHeight;
    // Any upward scroll is the user's and stops following; our own scrolling only goes down.
    if (el.scrollTop < last.current - 1 && left > 2) pinned.current = false;
    else if (left < 40) pinned.current = true;
    last.current = el.scrollTop;
    setAway(!pinned.current && left > 80);
  };
  return (
    <Fill>
      <div
        className={styles.scroller}
        ref={scroller}
        onScroll={scrolled}
        tabIndex={0}
        role="region"
        aria-label="Conversation"
        data-items={items.length}
      >
        <div className={styles.column} style={{ height }}>
          {list.getVirtualItems().map((row) => {
            const item = items[row.index];
            return item ? (
              <div
                key={row.key}
                data-index={row.index}
                ref={list.measureElement}
                className={styles.row}
                style={{ transform: `translateY(${row.start}px)` }}
              >
                <Row item={item} session={session.id} />
              </div>
            ) : null;
          })}
        </div>
      </div>
      {away ? (
        <Button
          kind="chip"
          className={styles.down}
          onClick={() => {
            pinned.current = true;
            down();
          }}
        >
          ↓ to the end
        </Button>
      ) : null}
    </Fill>
  );
});

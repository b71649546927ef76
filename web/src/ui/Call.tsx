/**
 * A call: one line until it is expanded. An edit shows its diff, a command its last lines, an error
 * everything.
 */

import { useQuery } from '@tanstack/react-query';
import { memo, useEffect, useState } from 'react';
import * as api from '../net/api';
import { copyText } from '../state/actions';
import type { Call as CallItem } from '../state/fold';
import {
  change,
  count,
  gist,
  isCommand,
  outcomeWord,
  result,
  sign,
  soFar,
  title,
  titleLine,
  took,
  type Tone,
} from '../state/words';
import { spans, withoutSequences } from '../text/ansi';
import { visible } from '../text/safe';
import { Lines, readDiff, signed, useSplit } from './Diff';
import { Button, Mark } from './parts';
import { Pictures } from './Picture';
import styles from './Call.module.css';

/** Lines of output shown below a command that succeeded, failed or is running. */
const SHOWN = { done: 5, failed: 400, live: 12 };

/** Elapsed time, updated every second. */
export function Clock({ since }: { since: number }) {
  const [, turn] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => turn((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return <>{soFar(Date.now() - since)}</>;
}

/** Program output: text and allowed colours only. */
export function Output({ text, most, label }: { text: string; most?: number; label: string }) {
  const lines = text.replace(/\n+$/, '').split('\n');
  const hidden = most === undefined ? 0 : Math.max(0, lines.length - most);
  return (
    <pre className={styles.output} tabIndex={0} role="region" aria-label={label}>
      {hidden > 0 ? (
        <span className="faint">
          … {count(hidden, 'earlier line')}
          {'\n'}
        </span>
      ) : null}
      {spans(lines.slice(hidden).join('\n')).map((span, n) => (
        <span key={n} className={span.style || undefined}>
          {visible(span.text)}
        </span>
      ))}
    </pre>
  );
}

const runsCommand = (call: CallItem) => call.harness || isCommand(call.part);

function useBlob(session: string, hash: string | null | undefined, wanted: boolean) {
  return useQuery({
    queryKey: ['blob', hash],
    queryFn: async () => (await api.blob(session, hash ?? '')).text(),
    enabled: Boolean(hash) && wanted,
    staleTime: Infinity,
  });
}

function Edit({ call, session }: { call: CallItem; session: string }) {
  const [split, turn] = useSplit();
  const stored = useBlob(session, call.end?.diff, true);
  const files = stored.data
    ? readDiff(stored.data)
    : [{ path: gist(call.part), lines: signed(change(call.part)) }];
  return (
    <>
      {files.map((file, n) => (
        <Lines key={n} lines={file.lines} path={file.path || gist(call.part)} split={split} />
      ))}
      <div className={styles.under}>
        <Button kind="quiet" onClick={turn}>
          {split ? 'One column' : 'Side by side'}
        </Button>
      </div>
    </>
  );
}

function Body({ call, session, open }: { call: CallItem; session: string; open: boolean }) {
  const full = useBlob(session, call.end?.full, open);
  if (!call.end)
    return call.tail ? (
      <Output text={call.tail} most={open ? undefined : SHOWN.live} label="Output so far" />
    ) : null;
  const word = outcomeWord(call.end.outcome);
  const edits = word === 'done' && (call.end.diff || change(call.part).length > 0);
  if (edits && !call.harness) return <Edit call={call} session={session} />;
  const note = typeof call.end.outcome === 'object' ? call.end.outcome.declined.note : null;
  if (note) return <p className={styles.comment}>note: {visible(note)}</p>;
  const images = call.end.images ?? [];
  if (images.length > 0)
    return (
      <>
        <Pictures session={session} images={images} alt={call.end.shown} />
        {open ? <Output text={call.end.shown} label="Output" /> : null}
      </>
    );
  const shows =
    open ||
    word === 'failed' ||
    word === 'unknown' ||
    (runsCommand(call) && (word === 'done' || word === 'interrupted'));
  if (!shows) return null;
  const text = full.data ?? call.end.shown;
  if (!text.trim() || text.trim() === '(no output)')
    return open ? <p className={styles.comment}>no output</p> : null;
  return (
    <Output
      text={text}
      most={open ? undefined : word === 'failed' ? SHOWN.failed : SHOWN.done}
      label="Output"
    />
  );
}

export const Call = memo(function Call({ call, session }: { call: CallItem; session: string }) {
  const [open, setOpen] = useState(false);
  const ended = call.end ? sign(call.end.outcome) : null;
  const runs = !call.end && call.began !== null;
  const mark: { mark: string; tone: Tone; name: string } =
    ended ??
    (runs
      ? { mark: '●', tone: 'run', name: 'running' }
      : call.asked
        ? { mark: '?', tone: 'warn', name: 'waiting for you' }
        : { mark: '○', tone: 'quiet', name: call.gone ? 'not run' : 'not started' });
  const words = call.end
    ? [
        call.answer ? `you: ${visible(call.answer)}` : '',
        result(call.part, call.harness, call.end),
        call.end.isolation && runsCommand(call)
          ? call.end.isolation === 'D'
            ? 'unsandboxed'
            : 'sandboxed'
          : '',
        call.end.ms >= 100 || runsCommand(call) ? took(call.end.ms) : '',
      ]
    : [
        call.asked
          ? 'waiting for you'
          : call.gone
            ? 'not run'
            : call.answer
              ? `you: ${visible(call.answer)}`
              : '',
      ];
  return (
    <article
      className={styles.call}
      aria-label={`${mark.name}: ${titleLine(title(call.part, call.harness))}`}
    >
      <button
        type="button"
        className={styles.head}
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Mark tone={mark.tone} name={mark.name}>
          {mark.mark}
        </Mark>
        <span className={styles.title}>{titleLine(title(call.part, call.harness))}</span>
        <span className={styles.result}>
          {runs ? <Clock since={call.began ?? 0} /> : words.filter(Boolean).join(' · ')}
        </span>
      </button>
      {open ? (
        <div className={styles.more}>
          <pre className={styles.arguments} tabIndex={0} role="region" aria-label="Arguments">
            {visible(call.part.tool)} {visible(call.part.args)}
          </pre>
          <Button
            kind="quiet"
            onClick={() => void copyText(withoutSequences(call.end?.shown ?? call.tail))}
          >
            Copy output
          </Button>
        </div>
      ) : null}
      <Body call={call} session={session} open={open} />
    </article>
  );
});

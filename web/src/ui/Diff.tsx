/** A unified diff in one or two columns, with line numbers and highlighting. */

import { parsePatch } from 'diff';
import { memo, useMemo, useState } from 'react';
import { languageOf } from '../text/highlight';
import { visible } from '../text/safe';
import { Line, useTokens } from './Code';
import { classes } from './classes';
import { Button } from './parts';
import type { Token } from '../text/highlight';
import styles from './Diff.module.css';

export interface DiffLine {
  kind: 'same' | 'add' | 'del' | 'gap' | 'note' | 'file';
  old: number | null;
  now: number | null;
  text: string;
}

/** Lines shown at first; a button shows the rest. */
const SHOWN = 400;

/** The files of a diff, each with its lines. Text that is not a diff is shown as it is. */
export function readDiff(text: string): { path: string; lines: DiffLine[] }[] {
  try {
    const files = parsePatch(text).filter((file) => file.hunks.length > 0);
    if (files.length > 0) {
      return files.map((file) => ({
        path: (file.newFileName && file.newFileName !== '/dev/null'
          ? file.newFileName
          : (file.oldFileName ?? '')
        ).replace(/^[ab]\//, ''),
        lines: file.hunks.flatMap((hunk, n) => {
          let [old, now] = [hunk.oldStart, hunk.newStart];
          const lines: DiffLine[] = n > 0 ? [{ kind: 'gap', old: null, now: null, text: '' }] : [];
          for (const line of hunk.lines) {
            const [sign, rest] = [line[0], line.slice(1)];
            if (sign === '+') lines.push({ kind: 'add', old: null, now: now++, text: rest });
            else if (sign === '-') lines.push({ kind: 'del', old: old++, now: null, text: rest });
            else if (sign === '\\')
              lines.push({ kind: 'note', old: null, now: null, text: rest.trim() });
            else lines.push({ kind: 'same', old: old++, now: now++, text: rest });
          }
          return lines;
        }),
      }));
    }
  } catch {
    // not a valid diff
  }
  return [{ path: '', lines: signed(text.split('\n')) }];
}

const VERBS: Record<string, string> = {
  'Add File': 'add',
  'Update File': 'edit',
  'Delete File': 'delete',
  'Move to': 'move to',
};

/**
 * Diff lines from signed lines, as in the arguments of an edit; they have no numbers. In a patch that
 * begins with its marker, the header of a file becomes a heading: a line of a file has a sign, so none
 * can pass for one. Elsewhere the tool may read another file from the text, so there are no headings.
 */
export function signed(lines: string[]): DiffLine[] {
  const marked = lines[0]?.trimEnd() === '*** Begin Patch';
  return lines.map((line) => {
    const [, what, path] =
      (marked ? /^\*\*\* (Add File|Update File|Delete File|Move to): (.*)$/.exec(line) : null) ??
      [];
    if (what !== undefined)
      return { kind: 'file', old: null, now: null, text: `${VERBS[what]} ${path}` };
    const kind = line.startsWith('+') ? 'add' : line.startsWith('-') ? 'del' : 'same';
    return {
      kind,
      old: null,
      now: null,
      text: kind === 'same' ? line.replace(/^ /, '') : line.slice(1),
    };
  });
}

/** Rows for two columns: removed lines next to the lines that replaced them. */
export function beside(lines: DiffLine[]): [DiffLine | null, DiffLine | null][] {
  const rows: [DiffLine | null, DiffLine | null][] = [];
  for (let n = 0; n < lines.length;) {
    const line = lines[n] as DiffLine;
    if (line.kind !== 'del' && line.kind !== 'add') {
      rows.push([line, line]);
      n++;
      continue;
    }
    const dels: DiffLine[] = [];
    const adds: DiffLine[] = [];
    while (lines[n]?.kind === 'del') dels.push(lines[n++] as DiffLine);
    while (lines[n]?.kind === 'add') adds.push(lines[n++] as DiffLine);
    for (let m = 0; m < Math.max(dels.length, adds.length); m++)
      rows.push([dels[m] ?? null, adds[m] ?? null]);
  }
  return rows;
}

const SIGN = { same: ' ', add: '+', del: '−', gap: '⋯', note: ' ', file: '' } as const;
const NAME = {
  same: '',
  add: 'added',
  del: 'removed',
  gap: 'lines left out',
  note: '',
  file: '',
} as const;
const LOOK: Record<DiffLine['kind'], string | undefined> = {
  same: undefined,
  add: styles.add,
  del: styles.del,
  gap: styles.gap,
  note: styles.note,
  file: styles.file,
};

function Cell({ line, tokens }: { line: DiffLine | null; tokens: Map<DiffLine, Token[]> | null }) {
  if (!line) return <div className={classes(styles.line, styles.none)} />;
  return (
    <div className={classes(styles.line, LOOK[line.kind])}>
      <span className={styles.number}>{line.now ?? line.old ?? ''}</span>
      <span
        className={styles.sign}
        aria-label={NAME[line.kind] || undefined}
        role={NAME[line.kind] ? 'img' : undefined}
      >
        {SIGN[line.kind]}
      </span>
      <span>
        <Line line={tokens?.get(line)} plain={line.text} />
      </span>
    </div>
  );
}

const KEPT = 'dunnock.split';

export const Lines = memo(function Lines({
  lines,
  path,
  split = false,
}: {
  lines: DiffLine[];
  path: string;
  split?: boolean;
}) {
  const [all, setAll] = useState(false);
  const part = all ? lines : lines.slice(0, SHOWN);
  const coloured = useMemo(() => part.filter((l) => l.kind !== 'gap' && l.kind !== 'note'), [part]);
  const found = useTokens(coloured.map((l) => l.text).join('\n'), languageOf(path));
  const tokens = useMemo(
    () => (found ? new Map(coloured.map((line, n) => [line, found[n] ?? []])) : null),
    [found, coloured],
  );
  return (
    <div
      className={classes(styles.diff, split && styles.split)}
      role="region"
      tabIndex={0}
      aria-label={`Changes to ${visible(path) || 'a file'}`}
    >
      <div className={styles.lines}>
        {split
          ? beside(part).map(([a, b], n) => (
              <div className={styles.pair} key={n}>
                <Cell line={a} tokens={tokens} />
                <Cell line={b} tokens={tokens} />
              </div>
            ))
          : part.map((line, n) => <Cell key={n} line={line} tokens={tokens} />)}
      </div>
      {lines.length > part.length ? (
        <Button kind="quiet" onClick={() => setAll(true)}>
          Show {lines.length - part.length} more lines
        </Button>
      ) : null}
    </div>
  );
});

export function useSplit(): [boolean, () => void] {
  const [split, setSplit] = useState(() => localStorage.getItem(KEPT) === 'yes');
  return [
    split,
    () => {
      localStorage.setItem(KEPT, split ? 'no' : 'yes');
      setSplit(!split);
    },
  ];
}

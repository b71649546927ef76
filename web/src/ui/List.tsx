/** The session list: waiting sessions first, then working ones, then the rest by day. */

import { memo, useEffect, useState } from 'react';
import type { OverviewRow, Today } from '../api.gen';
import { addressOf, set, useStore } from '../state/store';
import { age, cents, firstLine, folderName, title, titleLine } from '../state/words';
import { classes } from './classes';
import { Bird, Button, Dot, Empty, Kbd, LinkButton, stateName } from './parts';
import panel from './panel.module.css';
import styles from './List.module.css';

/** Today's cost; “at least” if some prices are unknown. */
export function spent(today: Today): string {
  const sum = !today.unknown
    ? cents(today.micros)
    : today.micros > 0
      ? `at least ${cents(today.micros)}`
      : 'price unknown';
  return today.budget ? `${sum} of ${cents(today.budget)}` : sum;
}

const DAY = 86_400_000;
const isToday = (row: OverviewRow) =>
  Date.now() - Date.parse(row.updated) < DAY &&
  new Date(row.updated).getDate() === new Date().getDate();

export function groups(rows: OverviewRow[]): [string, OverviewRow[]][] {
  const rest = rows.filter((r) => r.shown_status !== 'waiting' && r.shown_status !== 'working');
  const all: [string, OverviewRow[]][] = [
    ['Waiting for you', rows.filter((r) => r.shown_status === 'waiting')],
    ['Running', rows.filter((r) => r.shown_status === 'working')],
    ['Today', rest.filter(isToday)],
    ['Earlier', rest.filter((r) => !isToday(r))],
  ];
  return all.filter(([, list]) => list.length > 0);
}

/** What a session is doing, in a few words. */
export function doing(row: OverviewRow): string {
  const more = row.more;
  if (row.shown_status === 'waiting') {
    // Without a question, it waits for the reply of a copy-and-paste chat.
    const since = age(Date.now() - Date.parse(row.updated));
    return more?.questions.length === 0 ? `copy and paste · ${since}` : since;
  }
  if (row.shown_status !== 'working')
    return more?.proof === 'proven'
      ? 'proven'
      : row.shown_status === 'failed' && more?.proof === 'failed'
        ? 'not proven'
        : stateName(row.shown_status);
  const what = more?.running
    ? titleLine(
        title({ tool: more.running.tool, args: more.running.arguments }, more.running.harness),
      )
    : more?.thinking
      ? 'thinking'
      : '';
  return [more ? `step ${more.step}` : '', what, row.here ? '' : 'in another process']
    .filter(Boolean)
    .join(' · ');
}

export const money = (row: OverviewRow) =>
  row.more?.micros == null
    ? ''
    : row.more.micros === 0
      ? ''
      : row.more.micros < 10_000
        ? '<$0.01'
        : cents(row.more.micros);

function Row({ row, on }: { row: OverviewRow; on: boolean }) {
  const waits =
    row.shown_status === 'waiting' ? String(row.more?.questions.length || 1) : money(row);
  return (
    <li>
      <a
        className={classes(styles.session, on && styles.current)}
        href={addressOf({ at: 'session', id: row.id })}
        aria-current={on ? 'page' : undefined}
        onClick={() => set({ drawer: null, walking: false })}
        title={row.title}
      >
        <Dot state={row.shown_status} />
        <b>{firstLine(row.title) || 'no task yet'}</b>
        <span className="meta">{waits}</span>
        <small>
          {folderName(row.workspace)} · {doing(row)}
        </small>
      </a>
    </li>
  );
}

export const List = memo(function List() {
  const overview = useStore((s) => s.overview);
  const route = useStore((s) => s.route);
  const [, turn] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => turn((n) => n + 1), 30_000); // "2 min" becomes "3 min"
    return () => clearInterval(timer);
  }, []);
  const rows = overview?.sessions ?? [];
  const today = overview?.today;
  return (
    <nav className={panel.panel} aria-label="Sessions">
      <div className={styles.brand}>
        <Bird />
        Dunnock
        <span className="spacer" />
        <Button
          kind="quiet"
          className={styles.close}
          data-closes="list"
          onClick={() => set({ drawer: null })}
          aria-label="Close the list"
        >
          ×
        </Button>
      </div>
      <button
        type="button"
        className={styles.search}
        onClick={() => set({ dialog: { kind: 'search' } })}
      >
        <span>Search all sessions</span>
        <Kbd>ctrl k</Kbd>
      </button>
      <div className={styles.links}>
        <LinkButton
          href={addressOf({ at: 'new' })}
          onClick={() => set({ drawer: null })}
          aria-current={route.at === 'new' ? 'page' : undefined}
        >
          New <Kbd>c</Kbd>
        </LinkButton>
        <LinkButton
          href={addressOf({ at: 'all' })}
          onClick={() => set({ drawer: null })}
          aria-current={route.at === 'all' ? 'page' : undefined}
        >
          Overview <Kbd>o</Kbd>
        </LinkButton>
      </div>
      <div className={panel.rows}>
        {groups(rows).map(([name, list]) => (
          <div key={name} role="group" aria-label={name}>
            <h2 className={styles.group}>{name}</h2>
            <ul>
              {list.map((row) => (
                <Row key={row.id} row={row} on={route.at === 'session' && route.id === row.id} />
              ))}
            </ul>
          </div>
        ))}
        {overview && rows.length === 0 ? (
          <Empty>No sessions yet. Sessions you start here can be continued in the terminal.</Empty>
        ) : null}
      </div>
      <div className={panel.foot}>
        <span>Today (UTC)</span>
        <b>{today ? spent(today) : ''}</b>
      </div>
    </nav>
  );
});

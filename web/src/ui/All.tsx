/**
 * Overview of all sessions across projects: what each does, what is waiting, and the cost.
 * Questions can be answered here.
 */

import type { OverviewRow } from '../api.gen';
import { addressOf, useStore } from '../state/store';
import { about, age, count, firstLine, folderName } from '../state/words';
import { doing, money, spent } from './List';
import { classes } from './classes';
import { Dot, Empty, TopBar } from './parts';
import { Questions } from './Question';
import styles from './All.module.css';

function Card({ row, first }: { row: OverviewRow; first: boolean }) {
  return (
    <article className={styles.card}>
      <header>
        <Dot state={row.shown_status} />
        <h3>
          <a href={addressOf({ at: 'session', id: row.id })}>
            {firstLine(row.title) || 'no task yet'}
          </a>
        </h3>
        <span className={classes('meta', styles.cost)}>{money(row)}</span>
      </header>
      <p className={classes('faint', styles.details)}>
        {folderName(row.workspace)} · {doing(row)}
        {row.more
          ? ` · ${row.more.model} · ${row.more.isolation === 'D' ? 'no sandbox' : `sandbox ${row.more.isolation}`} · ${about(row.more.tokens)} tokens`
          : ''}
        {row.shown_status === 'waiting' ? '' : ` · ${age(Date.now() - Date.parse(row.updated))}`}
      </p>
      {row.shown_status === 'waiting' && row.more ? (
        <Questions
          session={row.id}
          workspace={row.workspace}
          checkpoints={row.more.checkpoints}
          asks={row.more.questions}
          main={first}
        />
      ) : null}
    </article>
  );
}

export function All() {
  const overview = useStore((s) => s.overview);
  const rows = overview?.sessions ?? [];
  // The longest wait comes first and stays there, so that no key hits one that just moved up.
  const waiting = rows
    .filter((r) => r.shown_status === 'waiting')
    .sort((a, b) => a.updated.localeCompare(b.updated));
  const working = rows.filter((r) => r.shown_status === 'working');
  const paused = rows.filter((r) => r.shown_status === 'paused');
  const rest = rows
    .filter((r) => !['waiting', 'working', 'paused'].includes(r.shown_status))
    .slice(0, 12);
  const today = overview?.today;
  const part = (name: string, list: OverviewRow[], none: string) => (
    <section aria-label={name}>
      <h2>{name}</h2>
      {list.length > 0 ? (
        <div className={styles.cards}>
          {list.map((row, n) => (
            <Card key={row.id} row={row} first={n === 0} />
          ))}
        </div>
      ) : (
        <Empty>{none}</Empty>
      )}
    </section>
  );
  return (
    <main id="main">
      <TopBar>
        <h1>Overview</h1>
        <span className="meta">
          {count(waiting.length, 'session')} waiting · {working.length} running
          {today ? ` · today ${spent(today)}` : ''}
        </span>
      </TopBar>
      <div className={styles.all} tabIndex={0} role="region" aria-label="All sessions">
        {part('Waiting for you', waiting, 'Nothing is waiting for you.')}
        {part('Running', working, 'Nothing is running. Press c to start a session.')}
        {paused.length > 0 ? part('Paused', paused, '') : null}
        {rest.length > 0 ? part('Recent', rest, '') : null}
      </div>
    </main>
  );
}

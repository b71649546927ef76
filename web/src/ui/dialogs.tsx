/** The dialogs: search, keys, rewind, undo, changes, rules, MCP servers, cost. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import type { Scope } from '../proto.gen';
import type { Change, Point, Row, RuleRow } from '../api.gen';
import * as api from '../net/api';
import { branch, order, stop } from '../state/actions';
import { isLongAddition, sourcesFirst } from '../state/changes';
import type { Session } from '../state/fold';
import { commands } from '../state/commands';
import { go, openSession, set, tell, useStore, type Dialog } from '../state/store';
import { about, count, firstLine, folderName, shape, usd } from '../state/words';
import { visible } from '../text/safe';
import { Lines, readDiff, useSplit } from './Diff';
import { classes } from './classes';
import { Button, Dot, Empty, Modal, Wrong } from './parts';
import styles from './dialogs.module.css';

const close = () => set({ dialog: null });

function Search() {
  const overview = useStore((s) => s.overview);
  const [words, setWords] = useState('');
  const [late, setLate] = useState('');
  const [at, setAt] = useState(0);
  useEffect(() => {
    const timer = setTimeout(() => setLate(words.trim()), 150);
    return () => clearTimeout(timer);
  }, [words]);
  const found = useQuery({
    queryKey: ['search', late],
    queryFn: () => api.search(late),
    enabled: late.length > 1,
    placeholderData: (old) => old,
  });
  const rows = useMemo<Row[]>(() => {
    const lower = words.trim().toLowerCase();
    const byTitle = (overview?.sessions ?? []).filter(
      (r) => !lower || `${r.title} ${r.workspace}`.toLowerCase().includes(lower),
    );
    const more = (late.length > 1 ? (found.data ?? []) : []).filter(
      (r) => !byTitle.some((b) => b.id === r.id),
    );
    const excerpts = new Map((found.data ?? []).map((r) => [r.id, r.excerpt]));
    return [...byTitle.map((r) => ({ ...r, excerpt: excerpts.get(r.id) })), ...more].slice(0, 30);
  }, [overview, words, late, found.data]);
  const open = (row: Row | undefined) => {
    if (!row) return;
    close();
    go({ at: 'session', id: row.id });
  };
  const pressed = (e: KeyboardEvent) => {
    if (e.nativeEvent.isComposing) return;
    const step = e.key === 'ArrowDown' ? 1 : e.key === 'ArrowUp' ? -1 : 0;
    if (step && rows.length) {
      e.preventDefault();
      setAt((n) => (Math.min(n, rows.length - 1) + step + rows.length) % rows.length);
    } else if (e.key === 'Enter') {
      e.preventDefault();
      open(rows[Math.min(at, rows.length - 1)]);
    }
  };
  const now = Math.min(at, rows.length - 1);
  return (
    <Modal title="Search all sessions">
      <input
        data-first
        role="combobox"
        aria-expanded="true"
        aria-controls="found"
        aria-label="Text to search for"
        aria-activedescendant={rows.length ? `found-${now}` : undefined}
        placeholder="Text from a conversation, a title or a folder"
        value={words}
        onChange={(e) => {
          setWords(e.target.value);
          setAt(0);
        }}
        onKeyDown={pressed}
      />
      {rows.length > 0 ? (
        <ul className={styles.found} id="found" role="listbox" aria-label="Sessions">
          {rows.map((row, n) => (
            <li
              key={row.id}
              id={`found-${n}`}
              role="option"
              aria-selected={n === now}
              ref={n === now ? (el) => el?.scrollIntoView({ block: 'nearest' }) : undefined}
              onClick={() => open(row)}
              onKeyDown={pressed}
            >
              <Dot state={row.shown_status} /> <b>{firstLine(row.title) || 'no task yet'}</b>{' '}
              <span className="faint">{folderName(row.workspace)}</span>
              {row.excerpt ? <small>{visible(row.excerpt)}</small> : null}
            </li>
          ))}
        </ul>
      ) : (
        <Empty id="found">
          {found.isError
            ? found.error.message
            : found.isFetching
              ? 'Searching'
              : 'No matching sessions.'}
        </Empty>
      )}
    </Modal>
  );
}

const KEYS: [string, [string, string][]][] = [
  [
    'Anywhere',
    [
      ['ctrl k', 'search all sessions'],
      ['c', 'new session'],
      ['o', 'overview'],
      ['/', 'go to the input'],
      ['j, k', 'next session, previous session'],
      ['[', 'show or hide the sessions'],
      [']', 'show or hide the timeline'],
      ['esc', 'stop the task; close what is open'],
      ['?', 'this list'],
    ],
  ],
  [
    'In a session',
    [
      ['u', 'undo the last task'],
      ['r', 'rewind to a step'],
      ['d', 'show its changes'],
      ['f', 'fork it into a new session'],
    ],
  ],
  [
    'At a question',
    [
      ['y', 'yes, once'],
      ['n', 'no'],
      ['t', 'no, with a note to the model'],
      ['a', 'always: shows the rule first'],
      ['a enter', 'always in this project'],
      ['a g', 'always in all projects'],
      ['a s', 'always in this session'],
      ['w', 'yes, with the whole network instead of named hosts'],
      ['e', 'explain'],
      ['enter', 'the key takes effect at once, not after half a second'],
      ['other letters', 'begin a message'],
      ['← →', 'previous question, next question'],
    ],
  ],
  [
    'In the input',
    [
      ['enter', 'send; while it works: send with the next step'],
      ['shift enter', 'new line'],
      ['@', 'files'],
      ['/', 'commands'],
      ['up', 'earlier prompts'],
      ['ctrl v', 'paste a picture'],
    ],
  ],
];

function Keys() {
  return (
    <Modal title="Keys and commands" wide>
      <div className={styles.keys}>
        {KEYS.map(([place, list]) => (
          <section key={place}>
            <h3>{place}</h3>
            <dl>
              {list.map(([k, what]) => (
                <div key={k}>
                  <dt>
                    <kbd>{k}</kbd>
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <section>
          <h3>Commands</h3>
          <dl>
            {commands(true, []).map((c) => (
              <div key={c.name}>
                <dt>
                  <kbd>/{c.name}</kbd>
                </dt>
                <dd>{c.about}</dd>
              </div>
            ))}
          </dl>
        </section>
      </div>
    </Modal>
  );
}

const ChangedLines = ({ change, split }: { change: Change; split: boolean }) =>
  readDiff(change.diff).map((file, n) => (
    <Lines key={n} lines={file.lines} path={change.path} split={split} />
  ));

function Changes({ id, steps }: { id: string; steps?: string }) {
  const [split, turn] = useSplit();
  const seq = useStore((s) => openSession(s)?.seq);
  const found = useQuery({
    queryKey: ['diff', id, steps, seq],
    queryFn: () => api.diff(id, steps),
    placeholderData: (old) => old,
  });
  if (found.isError) return <Wrong>{found.error.message}</Wrong>;
  if (!found.data)
    return (
      <p className="faint" role="status">
        Comparing
      </p>
    );
  if (found.data.changes.length === 0) return <Empty>No files changed.</Empty>;
  return (
    <div className={styles.changes}>
      <div className={styles.head}>
        <span className="faint">{count(found.data.changes.length, 'file')}</span>
        <span className="spacer" />
        <Button kind="quiet" onClick={turn}>
          {split ? 'One column' : 'Side by side'}
        </Button>
      </div>
      {sourcesFirst(found.data.changes).map((change) => (
        <section key={change.path} className={styles.file}>
          <h3>
            <code>{visible(change.path)}</code> <span className="faint">{change.how}</span>
          </h3>
          {isLongAddition(change) ? (
            <details>
              <summary>{count(change.diff.split('\n').length, 'line')}</summary>
              <ChangedLines change={change} split={split} />
            </details>
          ) : (
            <ChangedLines change={change} split={split} />
          )}
        </section>
      ))}
    </div>
  );
}

const SCOPES: [Scope, string][] = [
  ['both', 'files and conversation'],
  ['files', 'files only'],
  ['conversation', 'conversation only'],
];

const StopFirst = () => (
  <>
    <span className="faint">A task is running.</span>
    <Button onClick={() => void stop()}>Stop it first</Button>
  </>
);

function Rewind({ session, seq }: { session: Session; seq: number | null }) {
  const points = useQuery({
    queryKey: ['points', session.id, session.seq],
    queryFn: () => api.points(session.id),
    placeholderData: (old) => old,
  });
  const [picked, setPicked] = useState<number | null>(null);
  const [scope, setScope] = useState<Scope>('both');
  const [force, setForce] = useState(false);
  const list = points.data ?? [];
  const byStep = seq === null ? undefined : list.find((p) => p.seq >= seq);
  const point: Point | undefined =
    list.find((p) => p.step === picked) ?? byStep ?? list[Math.max(0, list.length - 2)];
  const back = async () => {
    if (
      point &&
      (await order(
        session.id,
        { rewind: { to: { event: Math.max(1, point.seq) }, scope, force } },
        session.version,
      ))
    ) {
      close();
      tell(`Rewound to step ${point.step}. You can undo this, too.`);
    }
  };
  if (points.isError)
    return (
      <Modal title="Rewind">
        <Wrong>{points.error.message}</Wrong>
      </Modal>
    );
  return (
    <Modal title="Rewind" wide>
      {session.working ? (
        <p className="buttons">
          <StopFirst />
        </p>
      ) : null}
      <div className={styles.rewind}>
        <fieldset className={styles.points}>
          <legend className="sr-only">Steps</legend>
          {list.length === 0 ? (
            <p className="faint" role="status">
              {points.isFetching ? 'Loading the steps' : 'No steps yet.'}
            </p>
          ) : null}
          {list.map((p) => (
            <label key={p.step} className={classes(p === point && styles.chosen)}>
              <input
                type="radio"
                name="step"
                checked={p === point}
                onChange={() => setPicked(p.step)}
              />
              <span className={styles.number}>{p.step}</span>
              <span className={styles.title}>{visible(p.title)}</span>
              <small>{p.files == null ? '' : `${count(p.files, 'file')} would change`}</small>
            </label>
          ))}
        </fieldset>
        <div className={styles.effect}>
          <fieldset className={styles.scopes}>
            <legend>What to restore</legend>
            {SCOPES.map(([value, name]) => (
              <label key={value}>
                <input
                  type="radio"
                  name="scope"
                  checked={scope === value}
                  onChange={() => setScope(value)}
                />{' '}
                {name}
              </label>
            ))}
          </fieldset>
          {point && point.skipped.length > 0 ? (
            <label>
              <input type="checkbox" checked={force} onChange={(e) => setForce(e.target.checked)} />{' '}
              also overwrite files changed outside this session:{' '}
              {point.skipped.map(visible).join(', ')}
            </label>
          ) : null}
          <div className="buttons">
            <Button kind="go" disabled={!point || session.working} onClick={() => void back()}>
              Rewind to step {point?.step ?? ''}
            </Button>
            <Button
              disabled={!point}
              onClick={() => point && void branch(session.id, Math.max(1, point.seq))}
            >
              Fork from here
            </Button>
          </div>
          <h3>What would be undone</h3>
          {point && scope !== 'conversation' ? (
            <Changes id={session.id} steps={`${point.step}..`} />
          ) : (
            <p className="faint">Files stay as they are.</p>
          )}
        </div>
      </div>
    </Modal>
  );
}

function Undo({ session }: { session: Session }) {
  const way = useQuery({
    queryKey: ['undo', session.id, session.seq],
    queryFn: () => api.undoWay(session.id),
    retry: false,
  });
  const go = useRef<HTMLButtonElement>(null);
  const ready = Boolean(way.data) && !session.working;
  useEffect(() => {
    if (ready) go.current?.focus();
  }, [ready]);
  const back = async () => {
    if (
      way.data &&
      (await order(
        session.id,
        { rewind: { to: way.data.to, scope: way.data.scope, force: false } },
        session.version,
      ))
    ) {
      close();
      tell('Undone. Undo again to redo it.');
    }
  };
  return (
    <Modal title="Undo">
      {way.isError ? <Wrong>{way.error.message}</Wrong> : null}
      {way.data ? (
        <pre className={styles.summary}>{way.data.summary.map(visible).join('\n')}</pre>
      ) : way.isError ? null : (
        <p className="faint" role="status">
          Checking what would change
        </p>
      )}
      <div className="buttons">
        <Button kind="go" ref={go} disabled={!ready} onClick={() => void back()}>
          Undo
        </Button>
        {session.working ? <StopFirst /> : null}
      </div>
    </Modal>
  );
}

function Rules() {
  const client = useQueryClient();
  const rules = useQuery({ queryKey: ['rules'], queryFn: api.rules });
  const id = useStore((s) => openSession(s)?.id);
  const grants = useStore((s) => openSession(s)?.grants);
  const revoke = async (r: RuleRow) => {
    try {
      await api.setRule(r.rule, r.allow, false, r.project ?? undefined);
      await client.invalidateQueries({ queryKey: ['rules'] });
    } catch (error) {
      tell((error as Error).message, 'bad');
    }
  };
  return (
    <Modal title="Your approval rules">
      {rules.isError ? <Wrong>{rules.error.message}</Wrong> : null}
      {rules.data?.length === 0 ? <Empty>No rules yet. Answering “Always” adds one.</Empty> : null}
      <ul className={styles.rules}>
        {rules.data?.map((r, n) => (
          <li key={n}>
            <span className={r.allow ? 'good' : 'bad'}>{r.allow ? 'allow' : 'deny'}</span>{' '}
            <code>{visible(r.words)}</code> <span className="faint">{visible(r.place)}</span>
            <span className="spacer" />
            <Button kind="quiet" onClick={() => void revoke(r)}>
              Revoke
            </Button>
          </li>
        ))}
      </ul>
      {/* Not before the rules above are there: nothing may move under the pointer. */}
      {id && grants && grants.length > 0 && !rules.isPending ? (
        <>
          <h3>In this session only</h3>
          <ul className={styles.rules}>
            {grants.map((rule, n) => (
              <li key={n}>
                <span className="good">allow</span> <code>{visible(shape(rule))}</code>
                <span className="spacer" />
                <Button kind="quiet" onClick={() => void order(id, { revoke: { rule } })}>
                  Revoke
                </Button>
              </li>
            ))}
          </ul>
        </>
      ) : null}
    </Modal>
  );
}

function Servers() {
  const session = useStore((s) => openSession(s));
  const workspace = session?.workspace || undefined;
  const servers = useQuery({
    queryKey: ['servers', workspace],
    queryFn: () => api.servers(workspace),
    refetchInterval: 2000,
  });
  return (
    <Modal title="MCP servers">
      {servers.isError ? <Wrong>{servers.error.message}</Wrong> : null}
      {servers.data?.length === 0 ? (
        <Empty>No servers yet. To add one: dunnock mcp add NAME -- PROGRAM</Empty>
      ) : null}
      <ul className={styles.servers}>
        {servers.data?.map((server) => (
          <li key={server.name}>
            <h3>
              {server.name}{' '}
              <span className="faint">
                {server.project_file ? `of this project, ${visible(server.project_file)}` : 'yours'}
                {' · '}
                {server.tools == null ? 'tools not known yet' : count(server.tools, 'tool')}
              </span>
            </h3>
            <code>{visible(server.target)}</code>
            <p className="faint">{visible(server.access)}</p>
            {server.sessions
              .filter((one) => !session || one.session === session.id)
              .map((one) => (
                <p key={one.session} className={one.state.startsWith('failed') ? 'bad' : 'good'}>
                  {session ? 'in this session' : `in session ${one.session}`}: {visible(one.state)}
                </p>
              ))}
          </li>
        ))}
      </ul>
    </Modal>
  );
}

function Cost({ session }: { session: Session }) {
  const t = session.total;
  return (
    <Modal title="Tokens and cost">
      <div className="scroll-x" role="region" tabIndex={0} aria-label="Steps">
        <table>
          <thead>
            <tr>
              <th>Step</th>
              <th>What</th>
              <th className="align-right">Tokens</th>
              <th className="align-right">Cost</th>
            </tr>
          </thead>
          <tbody>
            {session.steps.map((s, n) => (
              <tr key={s.seq}>
                <td>{n + 1}</td>
                <td>{visible(s.title)}</td>
                <td className="align-right">{about(s.tokens)}</td>
                <td className="align-right">{session.unknown ? '' : usd(s.micros)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p>
        {about(t.input)} in ({about(t.cached)} cached), {about(t.output)} out ·{' '}
        {session.unknown ? 'price unknown' : usd(session.micros)}
      </p>
    </Modal>
  );
}

/** A dialog about the open session. */
function SessionDialog({ dialog }: { dialog: Dialog }) {
  const session = useStore(openSession);
  if (!session) return null;
  switch (dialog.kind) {
    case 'rewind':
      return <Rewind session={session} seq={dialog.seq} />;
    case 'undo':
      return <Undo session={session} />;
    case 'diff':
      return (
        <Modal title="What this session changed" wide>
          <Changes id={session.id} />
        </Modal>
      );
    case 'cost':
      return <Cost session={session} />;
    default:
      return null;
  }
}

export function Dialogs() {
  const dialog = useStore((s) => s.dialog);
  if (!dialog) return null;
  switch (dialog.kind) {
    case 'search':
      return <Search />;
    case 'keys':
      return <Keys />;
    case 'rules':
      return <Rules />;
    case 'servers':
      return <Servers />;
    default:
      return <SessionDialog dialog={dialog} />;
  }
}

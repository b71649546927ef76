/** One session: header, conversation, open questions, input. */

import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { OpenQuestion } from '../api.gen';
import type { Effort } from '../proto.gen';
import * as api from '../net/api';
import { configure, prompt, stop } from '../state/actions';
import { unknown } from '../state/ask';
import { callOf, isCopyPaste, type Session } from '../state/fold';
import { EFFORTS, MODES } from '../state/commands';
import { openSession, useStore, type State } from '../state/store';
import { about, firstLine, folderName, title, titleLine, usd } from '../state/words';
import { visible } from '../text/safe';
import { Clock } from './Call';
import { classes } from './classes';
import { Composer, Dock, Status } from './Composer';
import { Button, Dot, Empty, Fill, Fold, LinkButton, TopBar, Wrong } from './parts';
import { Questions } from './Question';
import { Side } from './Side';
import { Transcript } from './Transcript';
import styles from './Conversation.module.css';

/** The open questions; one that the server has not described yet is a placeholder. */
function known(session: Session, asks: OpenQuestion[]): (OpenQuestion & { pending?: boolean })[] {
  return session.questions.map((q) => {
    const more = asks.find((a) => a.id === q.id && a.hash === q.hash);
    if (more) return more;
    const call =
      typeof q.kind === 'object' && 'approval' in q.kind
        ? callOf(session, q.kind.approval.call)
        : null;
    return unknown(
      q.id,
      q.hash,
      q.kind,
      call
        ? { id: call.id, tool: call.part.tool, arguments: call.part.args, harness: call.harness }
        : null,
    );
  });
}

/** A status line with what is happening now. */
export function Now({ session }: { session: Session }) {
  if (!session.working && !session.compacting && !session.rewinding) return null;
  const running = session.items
    .slice(session.mark)
    .filter((i) => i.kind === 'call' && i.began !== null && !i.end && !i.gone);
  const first = running[0];
  const waits = session.questions.length > 0 || session.awaitingReply;
  const what = session.stopping
    ? 'stopping'
    : session.questions.length > 0
      ? 'waiting for you'
      : first?.kind === 'call'
        ? titleLine(title(first.part, first.harness))
        : session.compacting
          ? 'compacting the conversation'
          : session.rewinding
            ? 'rewinding'
            : session.awaitingReply
              ? 'waiting for the answer from your chat'
              : session.asking
                ? session.live?.bytes
                  ? 'writing'
                  : 'thinking'
                : 'working';
  return (
    <p className={styles.now}>
      <Dot state={waits ? 'waiting' : 'working'} decorative />
      <span className={styles.what}>
        {what}
        {running.length > 1 ? ` and ${running.length - 1} more` : ''}
      </span>
      {session.run.began > 0 ? (
        <span className={classes('faint', styles.time)}>
          <Clock since={session.run.began} />
        </span>
      ) : null}
      {session.said ? <span className="faint">{visible(session.said)}</span> : null}
      <Button kind="quiet" k="esc" onClick={() => void stop()} disabled={session.stopping}>
        Stop
      </Button>
    </p>
  );
}

function Numbers() {
  const session = useStore(openSession);
  if (!session) return null;
  const window = session.config?.window ?? session.window;
  const isolation = session.config?.sandbox === 'off' ? 'D' : session.isolation;
  const copyPaste = isCopyPaste(session);
  const parts = [
    isolation ? (isolation === 'D' ? 'no sandbox' : `sandbox ${isolation}`) : '',
    !copyPaste && window
      ? `context ${Math.min(100, Math.floor((session.context * 100) / window))} %`
      : '',
    copyPaste ? 'copy and paste' : `${about(session.total.input + session.total.output)} tokens`,
    copyPaste ? '' : session.unknown ? 'price unknown' : usd(session.micros),
    session.working ? `step ${session.run.steps} of ${session.config?.max_steps ?? '?'}` : '',
  ].filter(Boolean);
  return (
    <Status>
      {parts.map((part) => (
        <span key={part}>{part}</span>
      ))}
    </Status>
  );
}

export function Choices({
  mode,
  model,
  effort,
  setMode,
  setModel,
  setEffort,
}: {
  mode: string;
  model: string;
  /** Null if the model has no setting for it. */
  effort: Effort | null;
  setMode: (m: string) => void;
  setModel: (m: string) => void;
  setEffort: (e: Effort) => void;
}) {
  const [wanted, setWanted] = useState(false);
  const models = useQuery({
    queryKey: ['models'],
    queryFn: api.models,
    enabled: wanted,
    staleTime: 60_000,
  });
  const all = [...new Set([model, ...(models.data ?? [])])].filter(Boolean);
  return (
    <>
      <label className={styles.choice}>
        approvals
        <select
          className={styles.chip}
          aria-label="Approvals"
          value={mode}
          onChange={(e) => {
            setMode(e.target.value);
            e.target.blur();
          }}
        >
          {MODES.map((m) => (
            <option key={m} value={m}>
              {m}
            </option>
          ))}
        </select>
      </label>
      <select
        className={styles.chip}
        aria-label="Model"
        value={model}
        onFocus={() => setWanted(true)}
        onPointerEnter={() => setWanted(true)}
        onChange={(e) => {
          setModel(e.target.value);
          e.target.blur();
        }}
      >
        {all.length === 0 ? <option value="">no model</option> : null}
        {all.map((m) => (
          <option key={m} value={m}>
            {visible(m)}
          </option>
        ))}
      </select>
      {effort ? (
        <label className={styles.choice}>
          effort
          <select
            className={styles.chip}
            aria-label="Effort"
            value={effort}
            onChange={(e) => {
              setEffort(e.target.value as Effort);
              e.target.blur();
            }}
          >
            {EFFORTS.map((e) => (
              <option key={e} value={e}>
                {e}
              </option>
            ))}
          </select>
        </label>
      ) : null}
    </>
  );
}

/** What the server knows of the session's folder: its branch and the user's own commands. */
function useFolder() {
  const workspace = useStore((s) => openSession(s)?.workspace);
  return useQuery({
    queryKey: ['start', workspace],
    queryFn: () => api.start(workspace),
    enabled: workspace !== undefined,
    staleTime: 60_000,
  }).data;
}

/** The title of the open session; until it is loaded, that of the session list. */
function heading(s: State): string {
  return (
    firstLine(openSession(s)?.title ?? '') ||
    firstLine(s.overview?.sessions.find((row) => row.id === s.opened?.id)?.title ?? '') ||
    'New session'
  );
}

function Head() {
  const name = useStore(heading);
  const folder = useStore((s) => folderName(openSession(s)?.workspace ?? ''));
  const link = useStore((s) => s.opened?.link);
  const trouble = useStore((s) => s.opened?.trouble);
  const elsewhere = useStore((s) => openSession(s)?.elsewhere ?? false);
  const branch = useFolder()?.branch;
  return (
    <TopBar>
      <h1 title={name}>{name}</h1>
      <span className="meta">
        {folder}
        {branch ? ` · ${visible(branch)}` : ''}
      </span>
      <span className="spacer" />
      {elsewhere && link === 'up' ? (
        <span className={classes(styles.chip, styles.elsewhere)}>
          also open in another window or terminal
        </span>
      ) : null}
      {link === 'down' ? (
        <span className={classes(styles.chip, styles.lost)} role="status">
          {trouble ? visible(trouble) : 'connection lost; trying again'}
        </span>
      ) : null}
      <Fold side="side" />
    </TopBar>
  );
}

function Messages() {
  const session = useStore(openSession);
  if (!session)
    return (
      <Fill>
        <p className="centered faint" role="status">
          Loading the session
        </p>
      </Fill>
    );
  if (session.items.length === 0)
    return (
      <Fill>
        <div className="centered">
          <Empty>No messages yet.</Empty>
        </div>
      </Fill>
    );
  return <Transcript session={session} />;
}

/** Above the input: open questions, queued prompts, what is happening now. */
function Pending() {
  const session = useStore(openSession);
  const described = useStore((s) => s.opened?.asks);
  const asks = useMemo(
    () => (session ? known(session, described ?? []) : []),
    [session, described],
  );
  if (!session) return null;
  return (
    <>
      {asks.length > 0 ? (
        <Questions
          session={session.id}
          workspace={session.workspace}
          checkpoints={session.config?.checkpoints ?? false}
          asks={asks}
          main
        />
      ) : null}
      {session.waiting.map((p) => (
        <p className={styles.queued} key={p.seq}>
          <span className="faint">sent with the next step:</span> {visible(p.text)}
        </p>
      ))}
      <Now session={session} />
    </>
  );
}

/** The input. It selects little, so that it is not rendered for each piece of an answer. */
function Input() {
  const id = useStore((s) => s.opened?.id ?? '');
  const working = useStore((s) => openSession(s)?.working ?? false);
  const compacting = useStore((s) => openSession(s)?.compacting ?? false);
  const mode = useStore((s) => openSession(s)?.config?.mode);
  const model = useStore((s) => openSession(s)?.config?.model);
  const effort = useStore((s) => openSession(s)?.effort ?? null);
  const walking = useStore((s) => s.walking);
  const folder = useFolder();
  return (
    <Composer
      key={id}
      session={id}
      own={folder?.commands ?? []}
      send={prompt}
      stop={working || compacting ? () => void stop() : undefined}
      placeholder={working ? 'Add a message; it is sent with the next step' : 'What next?'}
      autoFocus={!walking}
    >
      {mode !== undefined && model !== undefined ? (
        <Choices
          mode={mode}
          model={model}
          effort={effort}
          setMode={(to) => void configure(id, { mode: to as never })}
          setModel={(to) => void configure(id, { model: to })}
          setEffort={(to) => void configure(id, { effort: to })}
        />
      ) : null}
    </Composer>
  );
}

export function Conversation() {
  const error = useStore((s) => s.opened?.error);
  const needsYou = useStore(
    (s) => (openSession(s)?.questions.length ?? 0) > 0 || (openSession(s)?.awaitingReply ?? false),
  );
  if (error) {
    return (
      <main id="main">
        <TopBar>
          <h1>This session cannot be shown</h1>
        </TopBar>
        <div className="centered">
          <Wrong>{error}</Wrong>
          <LinkButton href="#/">Start a new session</LinkButton>
        </div>
      </main>
    );
  }
  return (
    <>
      <main id="main">
        <Head />
        <Messages />
        <Dock needsYou={needsYou}>
          <Pending />
          <Input />
          <Numbers />
        </Dock>
      </main>
      <Side />
    </>
  );
}

/**
 * The panel beside a conversation: plan, timeline of steps to rewind to, proof, tokens and cost.
 */

import type { ReactNode } from 'react';
import { branch } from '../state/actions';
import { isCopyPaste, type Step } from '../state/fold';
import { openSession, set, useStore } from '../state/store';
import { about, usd } from '../state/words';
import { visible } from '../text/safe';
import { Clock } from './Call';
import { classes } from './classes';
import { Button, Empty } from './parts';
import panel from './panel.module.css';
import styles from './Side.module.css';

const NAMES: Record<Step['state'], string> = {
  working: 'running',
  done: 'done',
  failed: 'failed',
  waiting: 'waiting for you',
};
const STATES: Record<Step['state'], string | undefined> = {
  working: styles.working,
  done: undefined,
  failed: styles.failed,
  waiting: styles.waiting,
};
const PLAN: Record<string, string | undefined> = {
  done: styles.done,
  active: styles.active,
  pending: styles.pending,
};
/** The most steps listed; earlier ones are in the rewind dialog. */
const SHOWN = 60;

function StepRow({ step, number, priced }: { step: Step; number: number; priced: boolean }) {
  const details = [
    step.gone ? 'undone' : step.state === 'done' ? '' : NAMES[step.state],
    step.tree ? 'files saved' : '',
    step.micros > 0 && priced
      ? usd(step.micros)
      : step.tokens > 0
        ? `${about(step.tokens)} tokens`
        : '',
  ]
    .filter(Boolean)
    .join(' · ');
  return (
    <li className={classes(styles.step, step.gone ? styles.gone : STATES[step.state])}>
      <i role="img" aria-label={step.gone ? 'undone' : NAMES[step.state]} />
      <span>
        <span className={styles.title}>{visible(step.title) || 'asking the model'}</span>
        <small>{details}</small>
      </span>
      {step.gone || step.state === 'working' ? null : (
        <Button
          kind="quiet"
          className={styles.back}
          onClick={() => set({ dialog: { kind: 'rewind', seq: step.seq } })}
          aria-label={`rewind here: after step ${number}`}
        >
          rewind here
        </Button>
      )}
    </li>
  );
}

const Panel = ({ children }: { children?: ReactNode }) => (
  <aside className={classes(panel.panel, styles.side)} aria-label="Plan and timeline">
    {children}
  </aside>
);

/** It is empty until the session is loaded. */
export function Side() {
  const session = useStore(openSession);
  if (!session) return <Panel />;
  const steps = session.steps.slice(-SHOWN);
  const hidden = session.steps.length - steps.length;
  const verify = session.config?.verify ?? [];
  const passed = new Map(session.run.checks.map((c) => [c.command, c.passed]));
  return (
    <Panel>
      <div className={panel.rows}>
        <Button
          kind="quiet"
          className={styles.close}
          data-closes="side"
          onClick={() => set({ drawer: null })}
          aria-label="Close the timeline"
        >
          ×
        </Button>
        {session.plan.length > 0 ? (
          <section aria-label="Plan">
            <h2>Plan</h2>
            <ol className={styles.plan}>
              {session.plan.map((step, n) => (
                <li key={n} className={PLAN[step.state]}>
                  {visible(step.text)}
                  <span className="sr-only"> ({step.state})</span>
                </li>
              ))}
            </ol>
          </section>
        ) : null}
        <section aria-label="Timeline">
          <h2>Timeline</h2>
          {hidden > 0 ? (
            <Button kind="quiet" onClick={() => set({ dialog: { kind: 'rewind', seq: null } })}>
              {hidden} earlier steps
            </Button>
          ) : null}
          {steps.length > 0 ? (
            <ol className={styles.timeline}>
              {steps.map((step, n) => (
                <StepRow
                  key={step.seq}
                  step={step}
                  number={hidden + n + 1}
                  priced={!session.unknown}
                />
              ))}
            </ol>
          ) : (
            <Empty>
              Steps appear here. You can go back to any of them: files, conversation, or both.
            </Empty>
          )}
          {steps.length > 0 ? (
            <div className={classes('buttons', styles.actions)}>
              <Button k="r" onClick={() => set({ dialog: { kind: 'rewind', seq: null } })}>
                Rewind
              </Button>
              <Button k="u" onClick={() => set({ dialog: { kind: 'undo' } })}>
                Undo
              </Button>
              <Button k="d" onClick={() => set({ dialog: { kind: 'diff' } })}>
                Changes
              </Button>
              <Button k="f" onClick={() => void branch(session.id)}>
                Fork
              </Button>
            </div>
          ) : null}
        </section>
        <section aria-label="Proof">
          <h2>Proof</h2>
          {verify.length > 0 ? (
            <ul className={styles.plan}>
              {verify.map((command) => (
                <li key={command}>
                  <code>{visible(command)}</code>{' '}
                  <span className="faint">
                    {passed.get(command) === true
                      ? 'passed'
                      : passed.get(command) === false
                        ? 'failed'
                        : 'runs when the agent is done'}
                  </span>
                </li>
              ))}
            </ul>
          ) : (
            <p className={classes('faint', styles.hint)}>
              No checks. Use the <code>verify</code> setting to list commands that must pass.
            </p>
          )}
        </section>
      </div>
      <dl className={panel.foot}>
        {isCopyPaste(session) ? (
          <>
            <dt>Model</dt>
            <dd>your chat, by copy and paste</dd>
          </>
        ) : (
          <>
            <dt>Tokens in / cached / out</dt>
            <dd>
              {about(session.total.input)} / {about(session.total.cached)} /{' '}
              {about(session.total.output)}
            </dd>
            <dt>Cost</dt>
            <dd>{session.unknown ? 'price unknown' : usd(session.micros)}</dd>
          </>
        )}
        {session.ended || session.run.began === 0 ? null : (
          <>
            <dt>Since the prompt</dt>
            <dd>
              <Clock since={session.run.began} />
            </dd>
          </>
        )}
      </dl>
    </Panel>
  );
}

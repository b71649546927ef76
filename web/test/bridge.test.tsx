/** A copy-and-paste session: what is to be done, and that no model is said to run meanwhile. */

import { render } from '@testing-library/react';
import { expect, test } from 'vitest';
import type { KnownEvent, Part } from '../src/proto.gen';
import { empty, fold, type Item, type Session } from '../src/state/fold';
import { furtherParts } from '../src/state/words';
import { Now } from '../src/ui/Conversation';

const USAGE = { input: 0, cached: 0, output: 0, reasoning: 0, written: 0 };

/** Folds facts, numbered as they come. */
function take(s: Session, ...facts: [string, object][]): Session {
  for (const [kind, body] of facts)
    fold(
      s,
      {
        event: {
          seq: s.seq + 1,
          at: 1000 * (s.seq + 1),
          kind,
          version: 1,
          need: 'must',
          body,
        } as unknown as KnownEvent,
      },
      1000,
    );
  return s;
}

const begun = () => take(empty('s'), ['prompted', { text: 'Look at it' }]);
const round = (step: number, parts = 1): [string, object][] => [
  ['step_started', { step, upto: 1 }],
  [
    'outbox_written',
    {
      step,
      outbox: `/w/.dunnock/bridge/00${step}-outbox.md`,
      inbox: `/w/.dunnock/bridge/00${step}-inbox.md`,
      parts,
    },
  ],
];
const answer = (step: number, ...parts: Part[]): [string, object] => [
  'answered',
  {
    step,
    attempts: [],
    model: 'bridge/chat',
    wire: 'files',
    parts,
    stop: 'calls',
    usage: USAGE,
    request: '',
  },
];
const read: Part = { call: { id: '', tool: 'view_file', args: '{"path":"README.md"}' } };
const outboxes = (s: Session) =>
  s.items.filter((i): i is Extract<Item, { kind: 'outbox' }> => i.kind === 'outbox');
const now = (s: Session) => {
  const { container, unmount } = render(<Now session={s} />);
  const found = {
    text: container.querySelector('.Conversation_what')?.textContent ?? '',
    dot: container.querySelector('.parts_dot')?.className ?? '',
    stop: container.querySelector('button')?.textContent ?? '',
  };
  unmount();
  return found;
};

test('a request for the chat says what to do, and waits until the answer is there', () => {
  const s = begun();
  take(s, round(1)[0] as [string, object]);
  expect(now(s)).toMatchObject({ text: 'thinking', dot: 'parts_dot parts_run' });
  take(s, round(1)[1] as [string, object]);
  expect(outboxes(s)).toEqual([
    {
      kind: 'outbox',
      key: 'o3',
      outbox: '/w/.dunnock/bridge/001-outbox.md',
      inbox: '/w/.dunnock/bridge/001-inbox.md',
      parts: 1,
      open: true,
    },
  ]);
  expect(s).toMatchObject({ working: true, asking: false, awaitingReply: true, readOnly: false });
  expect(s.steps[0]).toMatchObject({ state: 'waiting', title: 'request for your chat' });
  expect(now(s)).toMatchObject({
    text: 'waiting for the answer from your chat',
    dot: 'parts_dot parts_ask',
  });
  expect(now(s).stop).toContain('Stop');
  take(s, answer(1, read));
  expect(s).toMatchObject({ working: true, awaitingReply: false });
  // The row stays, above what came of it, and asks for nothing any more.
  expect(s.items.map((i) => i.kind)).toEqual(['prompt', 'outbox', 'call']);
  expect(outboxes(s)[0]?.open).toBe(false);
  expect(s.steps[0]).toMatchObject({ state: 'working', title: 'read README.md' });
  expect(now(s)).toMatchObject({ text: 'working', dot: 'parts_dot parts_run' });
});

test('whoever takes the session up meanwhile finds it waiting', () => {
  const s = take(begun(), ...round(1), ['owner_changed', { owner: '1', isolation: 'B' }]);
  expect(s.awaitingReply).toBe(true);
  expect(now(s).text).toBe('waiting for the answer from your chat');
});

test('each round has a row of its own, and only the last is open', () => {
  const s = take(
    begun(),
    ...round(1),
    answer(1, read),
    ['started', { call: '1.0' }],
    ['finished', { call: '1.0', outcome: 'done', shown: 'words' }],
    ...round(2, 3),
  );
  expect(outboxes(s).map((c) => [c.outbox.slice(-13), c.parts, c.open])).toEqual([
    ['001-outbox.md', 1, false],
    ['002-outbox.md', 3, true],
  ]);
  expect(new Set(s.items.map((i) => i.key)).size).toBe(s.items.length);
  expect(now(s).text).toBe('waiting for the answer from your chat');
  take(
    s,
    answer(
      2,
      { text: { text: 'All done.' } },
      { call: { id: '', tool: 'final_output', args: '{"answer":"All done."}' } },
    ),
    ['ended', { reason: 'done', proof: 'none' }],
  );
  expect(outboxes(s).every((c) => !c.open)).toBe(true);
  expect(s).toMatchObject({ working: false, awaitingReply: false, answer: 'All done.' });
  expect(now(s).text).toBe('');
});

test('a request for the chat can be stopped', () => {
  const s = take(begun(), ...round(1), ['interrupt_requested', {}]);
  expect(now(s).text).toBe('stopping');
  take(s, [
    'step_failed',
    { step: 1, attempts: [], failure: 'interrupted', error: 'interrupted', usage: USAGE },
  ]);
  expect(s.awaitingReply).toBe(false);
  expect(outboxes(s)[0]?.open).toBe(false);
  take(s, ['ended', { reason: 'stopped', proof: 'none' }]);
  expect(s).toMatchObject({ working: false, stopping: false, awaitingReply: false });
  expect(s.steps[0]?.state).toBe('failed');
});

test('an end without an answer leaves nothing open', () => {
  const s = take(begun(), ...round(1), ['ended', { reason: 'stopped', proof: 'none' }]);
  expect(s.awaitingReply).toBe(false);
  expect(outboxes(s)[0]?.open).toBe(false);
});

test('what is said while a reply is awaited is sent with the next step', () => {
  const s = take(begun(), ...round(1), ['prompted', { text: 'and mind the leap years' }]);
  expect(s.waiting.map((p) => p.text)).toEqual(['and mind the leap years']);
  expect(s.awaitingReply).toBe(true);
  take(s, answer(1, read), ['step_started', { step: 2, upto: s.seq }]);
  expect(s.waiting).toEqual([]);
  expect(s.items.some((i) => i.kind === 'prompt' && i.text === 'and mind the leap years')).toBe(
    true,
  );
});

test('further parts are counted', () => {
  expect([0, 1].map(furtherParts)).toEqual(['', '']);
  expect(furtherParts(2)).toBe(' and 1 more part next to it, in order,');
  expect(furtherParts(4)).toBe(' and 3 more parts next to it, in order,');
});

/** The reducer over the same frames as the terminal's screens (`fixtures/frames.jsonl`, made by `dunnock-tui/tests`). */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Frame } from '../src/proto.gen';
import { copy, empty, fold, isShown, type Item, type Session } from '../src/state/fold';
import { about, cents, result, sign, title, titleLine } from '../src/state/words';

interface Scene {
  scene: string;
  frames: Frame[];
}

const SCENES: Scene[] = readFileSync(
  join(import.meta.dirname, '../../fixtures/frames.jsonl'),
  'utf8',
)
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Scene);

function line(item: Item): string {
  switch (item.kind) {
    case 'prompt':
      return `> ${item.text}${item.images.length ? ` [${item.images.length}]` : ''}`;
    case 'thought':
      return `~ ${item.live ? '(live) ' : ''}${item.text}`;
    case 'text':
      return `  ${item.live ? '(live) ' : ''}${item.text}`;
    case 'call': {
      const mark = item.end
        ? sign(item.end.outcome).mark
        : item.began !== null
          ? '●'
          : item.asked
            ? '?'
            : '○';
      const words = item.end ? result(item.part, item.harness, item.end) : item.tail;
      return `${isShown(item) ? '' : '(quiet) '}${mark} ${titleLine(title(item.part, item.harness))}  ${item.answer ? `[${item.answer}] ` : ''}${words}`.trimEnd();
    }
    case 'note':
      return `- ${item.text}`;
    case 'outbox':
      return `${item.open ? '>>' : '--'} ${item.outbox}${item.parts > 1 ? ` (${item.parts})` : ''} << ${item.inbox}`;
    case 'reply':
      return `? ${item.text}  ${item.said}${item.note ? ` (${item.note})` : ''}`;
    case 'end':
      return `= ${item.word}${item.error ? `: ${item.error}` : ''}${item.checks.map((c) => `  ${c.command} ${c.passed}`).join('')}\n  ${item.closing}`;
  }
}

/** All that a page would show, as text. */
function outline(s: Session): string {
  const state = [
    s.working && 'working',
    s.asking && 'asking',
    s.awaitingReply && 'awaiting reply',
    s.stopping && 'stopping',
    s.compacting && 'compacting',
  ]
    .filter(Boolean)
    .join(' ');
  return [
    `${s.title} · ${s.workspace} · ${s.config?.model ?? ''} · ${state || 'rests'} · ${about(s.total.input + s.total.output)} tokens · ${s.unknown ? 'price unknown' : cents(s.micros)}`,
    ...s.items.map(line),
    ...s.waiting.map((p) => `(queued) ${p.text}`),
    ...s.questions.map((q) => `?? ${q.id} ${JSON.stringify(q.kind)}`),
    ...s.plan.map((p) => `[${p.state}] ${p.text}`),
    `steps: ${s.steps.map((p) => `${p.title || '...'} (${p.state})`).join(', ')}`,
  ].join('\n');
}

test.each(SCENES.filter((s) => s.frames.length > 0).map((s) => [s.scene, s.frames] as const))(
  '%s',
  (_, frames) => {
    const s = empty('s');
    for (const frame of frames) fold(s, frame, 1000);
    expect(outline(s)).toMatchSnapshot();
  },
);

test('there are scenes to be tested with', () => {
  expect(SCENES.filter((s) => s.frames.length > 0).length).toBeGreaterThan(40);
});

test.each(SCENES.filter((s) => s.frames.length > 3).map((s) => [s.scene, s.frames] as const))(
  '%s: whoever comes back and reads too much sees the same',
  (_, frames) => {
    const whole = empty('s');
    for (const frame of frames) fold(whole, frame, 1000);
    const isFact = (f: Frame) => typeof f === 'object' && 'event' in f;
    for (let cut = 1; cut < frames.length; cut++) {
      const s = empty('s');
      for (const frame of frames.slice(0, cut)) fold(s, frame, 1000);
      // A lost connection: the facts come again from some point before, the pieces that belong to them, too.
      for (const frame of frames.slice(Math.max(0, cut - 3)))
        if (isFact(frame) || frames.indexOf(frame) >= cut) fold(s, frame, 1000);
      expect(outline(s)).toBe(outline(whole));
    }
  },
);

test('what was handed out does not change under whoever holds it', () => {
  const { frames } = SCENES.find((s) => s.scene === 'proven') as Scene;
  const s = empty('s');
  const held: [Session, string][] = [];
  for (const frame of frames) {
    fold(s, frame, 1000);
    const one = copy(s);
    held.push([one, JSON.stringify(one.items)]);
  }
  for (const [one, then] of held) expect(JSON.stringify(one.items)).toBe(then);
});

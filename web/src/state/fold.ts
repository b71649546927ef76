/**
 * A session as the web app sees it: a fold over frames of the live channel, or over events read
 * from the log.
 *
 * This module has no access to sockets, the clock or the page: `fold(session, frame, now)` changes
 * the session it is given, and the store hands out copies. Events are applied in order and once.
 * Known events are ignored, so a client that reconnects can read too many events without harm.
 */

import type {
  Answer,
  Answered,
  Asked,
  CallPart,
  Config,
  Delta,
  Effort,
  KnownEvent,
  Finished,
  Frame,
  Greeting,
  OutboxWritten,
  Isolation,
  Partial as Part2,
  PlanStep,
  Preamble,
  Proof,
  Record as Stored,
  Rule,
  Usage,
  EndReason,
} from '../proto.gen';
import { byteLength, fresh } from '../text/safe';
import {
  about,
  cost,
  count,
  firstLine,
  changedFiles,
  gist,
  isHidden,
  shape,
  soFar,
  title,
  titleLine,
  usd,
} from './words';

/** How many characters of a running command's output are kept. */
const TAIL = 64 << 10;

export interface Call {
  kind: 'call';
  key: string;
  id: string;
  part: CallPart;
  harness: boolean;
  /** When it started, by this browser's clock. */
  began: number | null;
  /** The end of its output, while it runs. */
  tail: string;
  offset: number;
  end: Finished | null;
  /** A question about it is open. */
  asked: boolean;
  /** The user's answer to that question. */
  answer: string | null;
  /** The task ended before the call did. */
  gone: boolean;
}

export type Item =
  | { kind: 'prompt'; key: string; seq: number; text: string; images: string[] }
  | { kind: 'thought'; key: string; text: string; live: boolean }
  | { kind: 'text'; key: string; text: string; live: boolean }
  | Call
  | { kind: 'note'; key: string; text: string; tone: 'quiet' | 'bad' | 'warn' }
  | { kind: 'outbox'; key: string; outbox: string; inbox: string; parts: number; open: boolean }
  | { kind: 'reply'; key: string; text: string; said: string; note: string | null }
  | {
      kind: 'end';
      key: string;
      word: string;
      tone: 'good' | 'bad' | 'warn';
      error: string | null;
      checks: { command: string; passed: boolean | null }[];
      closing: string;
    };

export interface Question {
  id: number;
  kind: Asked['kind'];
  hash: string;
}

/** A step of the timeline: one request to the model. */
export interface Step {
  step: number;
  /** The event that started it. */
  seq: number;
  title: string;
  tree: string | null;
  micros: number;
  tokens: number;
  state: 'working' | 'done' | 'failed' | 'waiting';
  /** It was undone by a rewind. */
  gone: boolean;
}

export interface Prompt {
  seq: number;
  text: string;
  images: string[];
}

interface Live {
  step: number;
  attempt: number;
  text: string;
  bytes: number;
  reasoning: string;
  thought: number;
}

interface Run {
  began: number;
  steps: number;
  usage: Usage;
  micros: number;
  unknown: boolean;
  checks: { call: string; command: string; passed: boolean | null }[];
  files: Set<string>;
}

export interface Session {
  id: string;
  seq: number;
  /** The last event caused by a user; commands send it as the expected version. */
  version: number;
  title: string;
  workspace: string;
  config: Config | null;
  isolation: Isolation | null;
  window: number | null;
  /** The reasoning effort that is sent, if the model has a setting for it. */
  effort: Effort | null;
  /** The model whose server refused the effort. */
  effortRefusedBy: string | null;
  context: number;
  questions: Question[];
  plan: PlanStep[];
  /** The last answer, for the clipboard. */
  answer: string;
  /** Prompts that have not been sent to the model yet. */
  waiting: Prompt[];
  working: boolean;
  asking: boolean;
  /** A copy-and-paste session that is waiting for the chat's reply; no model is running. */
  awaitingReply: boolean;
  compacting: boolean;
  rewinding: boolean;
  stopping: boolean;
  /** Rules that were granted in this session. */
  grants: Rule[];
  said: string;
  ended: { reason: EndReason; proof: Proof } | null;
  /** Another process runs the session; this page only watches. */
  elsewhere: boolean;
  items: Item[];
  steps: Step[];
  run: Run;
  total: Usage;
  micros: number;
  unknown: boolean;
  /** The log contains events that this version must understand and does not. */
  readOnly: boolean;
  live: Live | null;
  /** Index of each call in `items`. */
  places: Map<string, number>;
  /** Where the items of the last request start; all open items come after it. */
  mark: number;
}

const nothing = (): Usage => ({ input: 0, cached: 0, output: 0, reasoning: 0, written: 0 });
const run = (began: number): Run => ({
  began,
  steps: 0,
  usage: nothing(),
  micros: 0,
  unknown: false,
  checks: [],
  files: new Set(),
});

export function empty(id: string): Session {
  return {
    id,
    seq: 0,
    version: 0,
    title: '',
    workspace: '',
    config: null,
    isolation: null,
    window: null,
    effort: null,
    effortRefusedBy: null,
    context: 0,
    questions: [],
    plan: [],
    answer: '',
    waiting: [],
    working: false,
    asking: false,
    awaitingReply: false,
    compacting: false,
    rewinding: false,
    stopping: false,
    grants: [],
    said: '',
    ended: null,
    elsewhere: false,
    items: [],
    steps: [],
    run: run(0),
    total: nothing(),
    micros: 0,
    unknown: false,
    readOnly: false,
    live: null,
    places: new Map(),
    mark: 0,
  };
}

/** A copy for components. Items are never changed in place, so a shallow copy is enough. */
export const copy = (s: Session): Session => ({
  ...s,
  items: s.items.slice(),
  steps: s.steps.slice(),
  questions: s.questions.slice(),
  waiting: s.waiting.slice(),
});

export function greet(s: Session, greeting: Greeting): void {
  // Owner 0 means that the server does not own the session and only watches it.
  if (typeof greeting === 'object' && 'welcome' in greeting)
    s.elsewhere = /^0+$/.test(String(greeting.welcome.owner));
}

export function fold(s: Session, frame: Frame, now: number): void {
  if (typeof frame === 'string') return;
  if ('event' in frame) addEvent(s, frame.event, now);
  else if ('delta' in frame) delta(s, frame.delta);
  else if ('partial' in frame) partial(s, frame.partial);
}

/** Applies an event, unless it is already known. */
export function addEvent(s: Session, record: Stored, now: number): void {
  if (record.seq <= s.seq) return;
  s.seq = record.seq;
  // Do not guess the content of an event that was erased or has an unknown form.
  if (record.body === null || typeof record.body !== 'object')
    return note(s, `? ${record.kind} (content not available)`);
  event(s, record as KnownEvent, record.at, now);
}

/** Events that change the version a command must expect (`dunnock-core/src/apply.rs`). */
const BY_PERSON = new Set([
  'created',
  'forked',
  'configured',
  'moved',
  'prompted',
  'continued',
  'replied',
  'revoked',
  'interrupt_requested',
  'titled',
  'rewind_requested',
]);

/** The effort that is sent: none if the model has no setting for it, or its server refused it. */
function setEffort(s: Session, preamble: Preamble): void {
  s.effort = preamble.model === s.effortRefusedBy ? null : (preamble.effort?.sent ?? null);
}

function event(s: Session, e: KnownEvent, at: number, now: number): void {
  if (BY_PERSON.has(e.kind) || (e.kind === 'compaction_started' && e.body.asked)) s.version = e.seq;
  switch (e.kind) {
    case 'created':
    case 'forked':
      s.workspace = e.body.workspace;
      s.config = e.body.config;
      if (e.kind === 'forked')
        note(s, `forked from ${e.body.from.slice(0, 8)} at event ${e.body.at}`);
      return;
    case 'moved':
      s.workspace = e.body.workspace;
      return;
    case 'configured': {
      if (!s.config) return;
      const set = e.body.set as Partial<Config>;
      const other = set.model !== undefined && set.model !== s.config.model;
      const before = s.config.effort;
      if (set.mode !== undefined && set.mode !== s.config.mode) note(s, `Approvals: ${set.mode}`);
      // The price belongs to the previous model.
      s.config = { ...s.config, ...(other ? { price: null } : {}), ...set };
      if (other) {
        s.window = s.effort = null;
        note(s, `Set model to ${s.config.model}`);
      } else if (set.effort && set.effort !== before) {
        note(s, `Set effort to ${set.effort}`);
      }
      return;
    }
    case 'preamble_set':
      s.window = e.body.preamble.window ?? null;
      setEffort(s, e.body.preamble);
      return;
    case 'owner_changed':
      s.isolation = e.body.isolation;
      stopCalls(s);
      endLive(s);
      return;
    case 'titled':
      s.title = e.body.title;
      return;
    case 'prompted':
      return prompted(s, { seq: e.seq, text: e.body.text, images: e.body.images ?? [] }, at);
    case 'continued':
      begin(s, at);
      return note(s, 'continuing');
    case 'step_started':
      s.run.steps += 1;
      s.asking = s.working = true;
      s.said = '';
      tellWaiting(s, e.body.upto);
      endLive(s);
      s.mark = s.items.length;
      s.live = { step: e.body.step, attempt: 0, text: '', bytes: 0, reasoning: '', thought: 0 };
      s.steps.push({
        step: e.body.step,
        seq: e.seq,
        title: '',
        tree: null,
        micros: 0,
        tokens: 0,
        state: 'working',
        gone: false,
      });
      return;
    case 'outbox_written':
      return outboxWritten(s, e.body);
    case 'answered':
      if (e.body.effort_refused) {
        s.effort = null;
        s.effortRefusedBy = e.body.model;
        note(s, `${e.body.model} does not accept an effort; it is no longer sent`);
      }
      return answered(s, e.body);
    case 'step_failed': {
      used(s, e.body.usage);
      s.asking = false;
      replyArrived(s);
      endLive(s);
      const again = e.body.retry_at != null;
      patchStep(s, { state: 'failed' });
      // It is sent again, and counts once.
      if (again) s.run.steps -= 1;
      // The end of the task says why it failed.
      if (!again && e.body.failure !== 'overflow') return;
      s.said = e.body.error;
      return note(s, e.body.error);
    }
    case 'check_called': {
      const part: CallPart = { id: '', tool: e.body.tool, args: e.body.args };
      s.run.checks.push({ call: e.body.call, command: title(part, true).slice(6), passed: null });
      return addCall(s, e.body.call, part, true);
    }
    case 'allowed':
      return e.body.args == null
        ? undefined
        : patchCall(s, e.body.call, (c) => ({
            ...c,
            part: { ...c.part, args: e.body.args ?? c.part.args },
          }));
    case 'started':
      return patchCall(s, e.body.call, (c) => ({ ...c, began: now, asked: false }));
    case 'finished':
      return finished(s, e.body);
    case 'planned':
      s.plan = e.body.steps;
      return;
    case 'asked':
      return asked(s, e.body);
    case 'replied':
      return replied(s, e.body.question, e.body.answer, e.body.note ?? null, e.seq);
    case 'granted':
      s.grants = [...s.grants, e.body.rule];
      return note(s, `allowed in this session: ${shape(e.body.rule)}`);
    case 'revoked':
      s.grants = s.grants.filter((rule) => JSON.stringify(rule) !== JSON.stringify(e.body.rule));
      return note(s, `no longer allowed: ${shape(e.body.rule)}`);
    case 'interrupt_requested':
      s.stopping = true;
      return note(s, 'stopping');
    case 'ended':
      return ended(s, e.body.reason, e.body.proof, at, e.seq);
    case 'checkpointed':
      patchStep(s, { tree: e.body.tree });
      if (e.body.note) note(s, e.body.note);
      return;
    case 'rewound': {
      const spans = e.body.spans;
      s.rewinding = false;
      s.steps = s.steps.map((old) => ({
        ...old,
        gone: !spans.some((span) => old.seq >= span.from && old.seq <= span.to),
      }));
      return note(s, e.body.note ? `rewound; ${e.body.note}` : 'rewound');
    }
    case 'rewind_failed':
      s.rewinding = false;
      return note(s, `could not rewind: ${e.body.error}`, 'bad');
    case 'compaction_started':
      s.compacting = e.body.asked || e.body.strength === 'summarise';
      return;
    case 'compacted':
      setEffort(s, e.body.preamble);
      s.compacting = false;
      used(s, e.body.usage ?? nothing());
      return note(
        s,
        `conversation ${e.body.summary == null ? 'shortened' : 'summarised'}: ${about(e.body.before)} to ${about(e.body.after)} bytes`,
      );
    case 'compaction_failed':
      s.compacting = false;
      used(s, e.body.usage ?? nothing());
      return note(s, `the conversation could not be compacted: ${e.body.error}`);
    case 'baselined':
      for (const check of e.body.checks)
        if (check.outcome !== 'done') note(s, `\`${check.command}\` failed before the task began`);
      return;
    case 'noticed':
      if ((e.body.sources?.length ?? 0) > 0 || (e.body.kind ?? 'info') !== 'info')
        note(s, `note to the model: ${firstLine(e.body.text)}`);
      return;
    case 'rewind_requested':
      s.rewinding = true;
      return;
    case 'timer_fired':
      return;
    default: {
      // A kind from a later version. The log says whether it can be ignored.
      const unknown = e as Stored;
      if (unknown.need === 'must') s.readOnly = true;
      note(s, `? ${unknown.kind} (unknown to this version)`);
    }
  }
}

function put(s: Session, item: Item): void {
  s.items.push(item);
}

function note(s: Session, text: string, tone: 'quiet' | 'bad' | 'warn' = 'quiet'): void {
  put(s, { kind: 'note', key: `n${s.seq}.${s.items.length}`, text, tone });
}

function begin(s: Session, at: number): void {
  s.run = run(at);
  s.working = true;
  s.stopping = false;
  s.ended = null;
}

function say(s: Session, prompt: Prompt): void {
  put(s, {
    kind: 'prompt',
    key: `p${prompt.seq}`,
    seq: prompt.seq,
    text: prompt.text,
    images: prompt.images,
  });
}

/** The items of the last request, with their indexes. */
function* recent(s: Session): Generator<[number, Item]> {
  for (let at = s.mark; at < s.items.length; at++) yield [at, s.items[at] as Item];
}

const isOpen = (item: Item): item is Call => item.kind === 'call' && !item.end && !item.gone;

const running = (s: Session) =>
  [...recent(s)].some(([, item]) => isOpen(item) && item.began !== null);

function prompted(s: Session, prompt: Prompt, at: number): void {
  if (!s.title) s.title = firstLine(prompt.text);
  s.answer = '';
  s.questions = s.questions.filter((q) => !(typeof q.kind === 'object' && 'limit' in q.kind));
  // While the session is working, a prompt is sent with the next step; until then it is shown as
  // queued.
  if (s.working && (s.asking || s.awaitingReply || running(s) || s.questions.length > 0))
    s.waiting.push(prompt);
  else {
    begin(s, at);
    say(s, prompt);
  }
}

function tellWaiting(s: Session, upto: number): void {
  while (s.waiting[0] && s.waiting[0].seq <= upto) say(s, s.waiting.shift() as Prompt);
}

function addCall(s: Session, id: string, part: CallPart, harness: boolean): void {
  s.places.set(id, s.items.length);
  put(s, {
    kind: 'call',
    key: `c${id}`,
    id,
    part,
    harness,
    began: null,
    tail: '',
    offset: 0,
    end: null,
    asked: false,
    answer: null,
    gone: false,
  });
}

/** A copy-and-paste session: tokens and cost are unknown. */
export const isCopyPaste = (s: Session) => s.config?.model === 'bridge/chat';

export function callOf(s: Session, id: string): Call | null {
  const item = s.items[s.places.get(id) ?? -1];
  return item?.kind === 'call' ? item : null;
}

function patchCall(s: Session, id: string, change: (call: Call) => Call): void {
  const call = callOf(s, id);
  if (call) s.items[s.places.get(id) ?? -1] = change(call);
}

function stopCalls(s: Session): void {
  for (const [at, item] of recent(s))
    if (isOpen(item) && item.began !== null) s.items[at] = { ...item, began: null };
}

function patchStep(s: Session, change: Partial<Step>): void {
  const last = s.steps.length - 1;
  const step = s.steps[last];
  if (step) s.steps[last] = { ...step, ...change };
}

function used(s: Session, usage: Usage): void {
  const price = s.config?.price ?? null;
  const micros = cost(price, usage);
  const some = usage.input > 0 || usage.output > 0;
  for (const sum of [s.total, s.run.usage]) {
    sum.input += usage.input;
    sum.cached += usage.cached;
    sum.output += usage.output;
    sum.reasoning += usage.reasoning;
    sum.written = (sum.written ?? 0) + (usage.written ?? 0);
  }
  s.micros += micros;
  s.run.micros += micros;
  if (!price && some) s.unknown = s.run.unknown = true;
  const step = s.steps[s.steps.length - 1];
  if (step)
    patchStep(s, {
      micros: step.micros + micros,
      tokens: step.tokens + usage.input + usage.output,
    });
}

type Streaming = Extract<Item, { live: boolean }>;
const isLive = (item: Item): item is Streaming =>
  (item.kind === 'text' || item.kind === 'thought') && item.live;

/** Ends streaming; the text shown so far stays. */
function endLive(s: Session): void {
  for (const [at, item] of recent(s)) if (isLive(item)) s.items[at] = { ...item, live: false };
  s.live = null;
}

/** Shows what to copy to the chat. */
function outboxWritten(s: Session, e: OutboxWritten): void {
  s.asking = false;
  s.awaitingReply = true;
  put(s, {
    kind: 'outbox',
    key: `o${s.seq}`,
    outbox: e.outbox,
    inbox: e.inbox,
    parts: e.parts,
    open: true,
  });
  patchStep(s, { title: 'request for your chat', state: 'waiting' });
}

/** Ends the wait for the chat's reply. The instructions stay, marked as done. */
function replyArrived(s: Session): void {
  s.awaitingReply = false;
  for (const [at, item] of recent(s))
    if (item.kind === 'outbox' && item.open) s.items[at] = { ...item, open: false };
}

/** Replaces the streamed text with the recorded answer. */
function answered(s: Session, e: Answered): void {
  used(s, e.usage);
  if (e.usage.input === 0 && e.usage.output === 0 && !isCopyPaste(s))
    s.unknown = s.run.unknown = true;
  s.context = e.usage.input + e.usage.output;
  s.asking = false;
  replyArrived(s);
  const kept = s.items.splice(s.mark).filter((item) => !isLive(item));
  s.items.push(...kept);
  // Streamed items keep their keys, so React keeps what it has rendered.
  const streamed = s.live?.step === e.step ? `l${e.step}.${s.live.attempt}` : null;
  const names = new Set<string>();
  const named = (sign: 't' | 'h') => {
    const name =
      streamed && !names.has(`${streamed}${sign}`)
        ? `${streamed}${sign}`
        : `${sign}${e.step}.${s.items.length}`;
    names.add(name);
    return name;
  };
  s.live = null;
  let index = 0;
  let thought = '';
  let said = '';
  const flushThought = () => {
    if (thought.trim()) put(s, { kind: 'thought', key: named('h'), text: thought, live: false });
    thought = '';
  };
  const flushText = () => {
    flushThought();
    if (said.trim()) put(s, { kind: 'text', key: named('t'), text: said, live: false });
    said = '';
  };
  let words = '';
  let last = '';
  const calls: [string, CallPart][] = [];
  for (const part of e.parts) {
    if ('reasoning' in part) {
      if (said) flushText();
      thought += part.reasoning.text;
    } else if ('text' in part) {
      said += part.text.text;
      words += part.text.text;
    } else {
      flushText();
      const id = `${e.step}.${index++}`;
      calls.push([id, part.call]);
      if (part.call.tool === 'final_output' && gist(part.call)) {
        s.answer = gist(part.call);
        put(s, { kind: 'text', key: named('t'), text: s.answer, live: false });
      }
      addCall(s, id, part.call, false);
      if (!isHidden(part.call.tool)) last = titleLine(title(part.call, false));
    }
  }
  flushText();
  if (calls.length === 0) s.answer = words;
  const hidden = UNSHOWN[calls.at(-1)?.[1].tool ?? ''] ?? 'empty answer';
  patchStep(s, {
    title: last || firstLine(words).replace(/^[#>*\s-]+/, '') || hidden,
    state: calls.length > 0 ? 'working' : 'done',
  });
}

/** What a step did whose only call is not shown. */
const UNSHOWN: Record<string, string> = {
  ask_person: 'asked you a question',
  update_plan: 'updated the plan',
  final_output: 'finished',
};

/** Whether a call has a line of its own. */
export const isShown = (call: Call) =>
  call.harness || !isHidden(call.part.tool) || (call.end !== null && call.end.outcome !== 'done');

function finished(s: Session, e: Finished): void {
  s.questions = s.questions.filter(
    (q) =>
      !(
        typeof q.kind === 'object' &&
        (('approval' in q.kind && q.kind.approval.call === e.call) ||
          ('person' in q.kind && q.kind.person.call === e.call))
      ),
  );
  const call = callOf(s, e.call);
  if (!call) return;
  const check = s.run.checks.find((c) => c.call === e.call);
  if (check) check.passed = e.outcome === 'done';
  if (e.diff) changedFiles(call.part).forEach((path) => s.run.files.add(path));
  patchCall(s, e.call, (c) => ({ ...c, end: e, asked: false, tail: '' }));
  const open = [...recent(s)].some(([, item]) => isOpen(item));
  if (!open) patchStep(s, { state: e.outcome === 'failed' ? 'failed' : 'done' });
}

function asked(s: Session, e: Asked): void {
  s.questions.push({ id: e.question, kind: e.kind, hash: e.hash });
  if (typeof e.kind === 'object' && 'approval' in e.kind)
    patchCall(s, e.kind.approval.call, (c) => ({ ...c, asked: true }));
  patchStep(s, { state: 'waiting' });
}

/** What a question was about, for the line that shows its answer. Approvals have no such line. */
function askedAs(kind: Asked['kind']): string {
  if (kind === 'budget') return 'Budget used up';
  if ('person' in kind) return firstLine(kind.person.text);
  if ('limit' in kind) return `Step limit of ${kind.limit.steps} reached`;
  if ('stalled' in kind) return 'The model seems stuck';
  if ('trust' in kind) return 'Trust this folder?';
  return 'Outcome unknown';
}

export function saidOf(answer: Answer): string {
  if (answer === 'yes' || answer === 'no') return answer;
  if (answer === 'wider') return 'yes, with the whole network';
  if ('always' in answer) return 'yes, always';
  if ('edit' in answer) return 'yes, edited';
  return answer.text.text;
}

function replied(
  s: Session,
  id: number,
  answer: Answer,
  withNote: string | null,
  seq: number,
): void {
  const question = s.questions.find((q) => q.id === id);
  s.questions = s.questions.filter((q) => q.id !== id);
  if (!question) return;
  // An answer about a call is shown with the call.
  const { kind } = question;
  if (typeof kind === 'object' && 'approval' in kind) {
    const said = saidOf(answer);
    patchCall(s, kind.approval.call, (c) => ({
      ...c,
      asked: false,
      answer: withNote ? `${said} (${withNote})` : said,
    }));
  } else
    put(s, {
      kind: 'reply',
      key: `r${seq}`,
      text: askedAs(kind),
      said: saidOf(answer),
      note: withNote,
    });
  if (s.questions.length === 0) patchStep(s, { state: 'working' });
}

const ENDS: Record<string, [string, 'good' | 'bad' | 'warn']> = {
  stopped: ['stopped', 'warn'],
  limit: ['step limit reached', 'warn'],
  budget: ['budget used up', 'warn'],
  deadline: ['deadline reached', 'warn'],
  unproven: ['not proven', 'bad'],
  failed: ['failed', 'bad'],
};

function ended(s: Session, reason: EndReason, proof: Proof, at: number, seq: number): void {
  endLive(s);
  replyArrived(s);
  tellWaiting(s, Number.MAX_SAFE_INTEGER);
  for (const [at, item] of recent(s))
    if (isOpen(item)) s.items[at] = { ...item, gone: true, asked: false, began: null };
  s.questions = [];
  s.plan = [];
  s.working = s.asking = s.stopping = s.compacting = false;
  s.ended = { reason, proof };
  const name = typeof reason === 'string' ? reason : 'failed';
  const [word, tone] =
    name === 'done'
      ? [proof === 'proven' ? 'proven' : 'done', 'good' as const]
      : (ENDS[name] ?? [name, 'warn' as const]);
  const lastTurn = s.run.checks[s.run.checks.length - 1]?.call.split('.')[0];
  const checks = s.run.checks
    .filter((c) => c.call.split('.')[0] === lastTurn)
    .map(({ command, passed }) => ({ command, passed }));
  const error = typeof reason === 'object' ? reason.failed.error : null;
  put(s, { kind: 'end', key: `e${seq}`, word, tone, error, checks, closing: closing(s, at) });
  const state = s.steps[s.steps.length - 1]?.state;
  if (state === 'working' || state === 'waiting')
    patchStep(s, { state: name === 'done' ? 'done' : 'failed' });
}

function closing(s: Session, at: number): string {
  const r = s.run;
  const parts = [count(r.steps, 'step'), soFar(at - r.began)];
  const tokens = r.usage.input + r.usage.output;
  if (tokens > 0) {
    parts.push(
      `${about(tokens)} tokens${r.usage.cached > 0 ? ` (${about(r.usage.cached)} cached)` : ''}`,
    );
    parts.push(r.unknown ? 'price unknown' : usd(r.micros));
  } else parts.push(isCopyPaste(s) ? 'copy and paste' : 'tokens unknown');
  if (r.files.size > 0) parts.push(count(r.files.size, 'file'));
  return parts.join(' · ');
}

function delta(s: Session, d: Delta): void {
  if ('text' in d || 'reasoning' in d) s.said = '';
  if ('text' in d) words(s, d.text.step, d.text.attempt, d.text.offset, d.text.text);
  else if ('reasoning' in d)
    thoughts(s, d.reasoning.step, d.reasoning.attempt, d.reasoning.offset, d.reasoning.text);
  else if ('output' in d) output(s, d.output.call, d.output.offset, d.output.text);
  else s.said = d.notice.text;
}

function partial(s: Session, p: Part2): void {
  if ('step' in p) {
    thoughts(s, p.step.step, p.step.attempt, 0, p.step.reasoning);
    words(s, p.step.step, p.step.attempt, 0, p.step.text);
  } else output(s, p.call.call, Math.max(0, p.call.offset - byteLength(p.call.tail)), p.call.tail);
}

function live(s: Session, step: number, attempt: number): Live {
  if (!s.live || s.live.step !== step || s.live.attempt !== attempt) {
    // The text of an attempt that was cut off stays, and a note says so.
    if (s.live && s.live.bytes > 0) {
      endLive(s);
      note(s, 'the answer was cut off; retrying');
    }
    s.live = { step, attempt, text: '', bytes: 0, reasoning: '', thought: 0 };
  }
  return s.live;
}

function stream(s: Session, kind: 'text' | 'thought', key: string, text: string): void {
  const at = s.items.findLastIndex((i) => i.key === key);
  s.items[at < 0 ? s.items.length : at] = { kind, key, text, live: true };
}

function words(s: Session, step: number, attempt: number, offset: number, text: string): void {
  const l = live(s, step, attempt);
  const more = fresh(l.bytes, offset, text);
  if (!more) return;
  l.bytes += byteLength(more);
  l.text += more;
  stream(s, 'text', `l${step}.${attempt}t`, l.text);
}

function thoughts(s: Session, step: number, attempt: number, offset: number, text: string): void {
  const l = live(s, step, attempt);
  const more = fresh(l.thought, offset, text);
  if (!more) return;
  l.thought += byteLength(more);
  l.reasoning += more;
  if (l.reasoning.trim()) stream(s, 'thought', `l${step}.${attempt}h`, l.reasoning);
}

function output(s: Session, id: string, offset: number, text: string): void {
  patchCall(s, id, (call) => {
    if (call.end) return call;
    const more = fresh(call.offset, offset, text);
    if (!more) return call;
    const tail = call.tail + more;
    return {
      ...call,
      offset: Math.max(call.offset, offset + byteLength(text)),
      tail: tail.length > 2 * TAIL ? tail.slice(-TAIL) : tail,
    };
  });
}

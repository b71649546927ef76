// Made by `cargo xtask generate` from crates/dunnock-proto. Do not edit.

/** What a client of the live channel sends is `Up`; it receives `Greeting` first, and then `Frame`. */

/** What a call is granted beyond the sandbox. */
export interface Access {
  /** The network of the machine. */
  network: boolean;
  /** Files of the workspace that other programs act on. */
  protected: boolean;
  /** Secret files of the workspace. */
  secrets: boolean;
  /** All of the machine: no sandbox at all. */
  unsandboxed: boolean;
}

/** A call may run. */
export interface Allowed {
  /** What it is granted beyond the sandbox, exactly as it was shown. */
  access?: Access;
  /** The arguments, where the person changed them. */
  args?: string | null;
  /** On whose word. */
  by: AllowedBy;
  /** Which. */
  call: CallId;
  /** Of tool and arguments: what runs is what was allowed. */
  hash: Hash;
  /** How commands were confined when that was said: with less it does not run. */
  isolation?: Isolation | null;
}

/** On whose word a call may run. */
export type AllowedBy = {
  policy: string;
} | {
  grant: Rule;
} | {
  person: QuestionId;
} | "harness";

/** What the person answers. */
export type Answer = "yes" | "no" | {
  always: {
    /** The shape, as it was shown. */
    rule: Rule;
  };
} | {
  edit: {
    /** The arguments. */
    args: string;
  };
} | {
  text: {
    /** The words. */
    text: string;
  };
};

/** The model answered. */
export interface Answered {
  /** Every try, the last of which succeeded. */
  attempts: (Attempt)[];
  /** Who answered. */
  model: string;
  /** What it said, in order. */
  parts: (Part)[];
  /** The raw response, kept by setting. */
  raw?: Hash | null;
  /** The hash of the request's bytes. */
  request: Hash;
  /** The step. */
  step: Step;
  /** Why it stopped. */
  stop: Stop;
  /** What all tries used. */
  usage: Usage;
  /** Over which wire: opaque parts go back only to their maker. */
  wire: string;
}

/** A call that waits for the person's approval, and what a yes means. */
export interface Approval {
  /** What a yes grants beyond the sandbox, exactly. */
  access?: Access;
  /** The call. */
  call: CallId;
  /** Hash of its tool and arguments: what a yes is about. */
  call_hash: Hash;
  /** How the call is isolated, if it runs a program. */
  isolation?: Isolation | null;
  /** What would be lost, where that could be found out beforehand. */
  preview?: (Loss)[];
  /** Why the person is asked, the most important reason first. */
  reasons: (Reason)[];
  /** What kind of request it is. */
  request: RequestKind;
  /** The rule that "always" would create, if there is one that would not match everything. */
  rule?: Rule | null;
}

/** A question to the person stands. */
export interface Asked {
  /** Hash of the question; an answer must name it. */
  hash: Hash;
  /** What it is about, with everything that is shown. */
  kind: QuestionKind;
  /** Its name. */
  question: QuestionId;
}

/** A moment, in milliseconds since 1970 (UTC). It orders nothing: [`Seq`] does. */
export type At = number;

/** One try at a request. */
export interface Attempt {
  /** When it began. */
  at: At;
  /** What went wrong, if anything. */
  error?: string | null;
  /** How long it took. */
  ms: number;
  /** What it used. */
  usage: Usage;
}

/** How one check ended before any work was done. */
export interface Baseline {
  /** The command. */
  command: string;
  /** Its exit code. */
  exit?: number | null;
  /** How long it took. */
  ms: number;
  /** How it ended. */
  outcome: Outcome;
  /** What it said. */
  shown: string;
}

/** The checks were run on a copy of the files as they were before the work. */
export interface Baselined {
  /** Each check, in order; none if the copy could not be made. */
  checks: (Baseline)[];
  /** Why there is none, or what the copy lacks. */
  note?: string | null;
  /** Of the commands that were to be run. */
  of: Hash;
  /** The files. */
  tree: Tree;
}

/** Where a carried conversation lies, and how much of it is shown at once. */
export interface Bridge {
  /** The folder of outboxes and inboxes, absolute. */
  folder: string;
  /** Characters of a command's output that are shown. */
  output: number;
  /** Characters of one part of an outbox. */
  size: number;
  /** Seconds that a command may take. */
  timeout: number;
}

/** Bounds on what a session may use; each absent one is no bound. */
export interface Budget {
  /** Millionths of a US dollar. */
  micros: number | null;
  /** Milliseconds of model and tool time. */
  ms: number | null;
  /** Tokens in and out. */
  tokens: number | null;
}

/** A call, written TURN.INDEX. */
export type CallId = string;

/** A call as the model wrote it. */
export interface CallPart {
  /** The arguments, as the exact text. */
  args: string;
  /** Why this cannot be run, for the model: it was meant as a call, and is none. */
  fault?: string | null;
  /** The provider's name for it: data, never a key. */
  id: string;
  /** Found in plain text, not given as a call. */
  recovered?: boolean;
  /** The tool. */
  tool: string;
}

/** The harness made a call of its own: a check of the finished work. */
export interface CheckCalled {
  /** The arguments. */
  args: string;
  /** Its name, counted on after the answer's own calls. */
  call: CallId;
  /** Reader or writer. */
  class: Class;
  /** After a crash. */
  recovery: Recovery;
  /** The tool. */
  tool: string;
  /** Which try at verification this is, from 1. */
  tried: number;
}

/** The files of the workspace were kept, or could not be. */
export interface Checkpointed {
  /** The event after which they had to be. */
  mark: number;
  /** What could not be kept, in words. */
  note?: string | null;
  /** Their state; absent if it could not be kept. */
  tree: Tree | null;
}

/** What a call may do to the workspace. */
export type Class = "read" | "edit" | "command";

/** What a person can do to a session. */
export type Command = {
  prompt: {
    /** Pictures, as blobs. */
    images?: (Hash)[];
    /** The words. */
    text: string;
  };
} | "run" | {
  reply: {
    /** The answer. */
    answer: Answer;
    /** Of what was shown. */
    hash: Hash;
    /** What the model should know of it. */
    note?: string | null;
    /** Which. */
    question: QuestionId;
  };
} | "interrupt" | {
  rewind: {
    /** Also what others changed since. */
    force: boolean;
    /** Of what. */
    scope: Scope;
    /** Where to. */
    to: RewindTo;
  };
} | "compact" | {
  configure: {
    /** Only what changes. */
    set: ConfigPatch;
  };
} | {
  title: {
    /** The title. */
    title: string;
  };
} | {
  revoke: {
    /** The rule. */
    rule: Rule;
  };
};

/** A command with the id that its sender minted; sending it twice gives the first answer again. */
export interface CommandRequest {
  /** What to do. */
  command: Command;
  /** The version that the sender saw; if it has moved on, the command is refused. */
  expect?: number | null;
  /** Minted by the sender. */
  id: InputId;
}

/** Conversation was compacted. */
export interface Compacted {
  /** Bytes of conversation after: fewer. */
  after: number;
  /** Bytes of conversation before. */
  before: number;
  /** What must not depend on a model's summary, word for word: the task, answers of the person, the plan, changed files. */
  notes?: string | null;
  /** The preamble from here on. */
  preamble: Preamble;
  /** Results that became shorter. */
  shortened?: (Shortened)[];
  /** What stands for everything up to `upto`, if it was summarised. */
  summary?: string | null;
  /** The last event it covers. */
  upto: number;
  /** What asking for the summary used. */
  usage?: Usage;
}

/** Conversation could not be compacted; it stays as it was. */
export interface CompactionFailed {
  /** Why. */
  error: string;
  /** The summary had begun and did not come to its end. */
  incomplete?: boolean;
  /** What it may have used beyond that, then. */
  lost?: Reserved;
  /** What asking for a summary used. */
  usage?: Usage;
}

/** Conversation up to a step's boundary is being compacted. */
export interface CompactionStarted {
  /** Whether the person asked for it. */
  asked: boolean;
  /** What the budget holds back for it. */
  reserved?: Reserved;
  /** How hard. */
  strength: Strength;
  /** The last event it covers: always the end of a step, so no call loses its result. */
  upto: number;
}

/** The settings of a session, whole. Its defaults serve tests and doors; a log holds the values. Only a setting that is younger than a log is missing there, and its default is what its absence meant. */
export interface Config {
  /** Always, by rules that the person made before. */
  allow: (Rule)[];
  /** Somebody can answer: limits and budgets become questions instead of ends. */
  attended: boolean;
  /** Whether the checks are run before the work, too, on a copy of the files. */
  baseline: boolean;
  /** Where its conversation lies, if it may be carried. */
  bridge: Bridge | null;
  /** Bounds on use. */
  budget: Budget;
  /** Whether the workspace's state is kept after each change. */
  checkpoints: boolean;
  /** Percent of the window at which the conversation is compacted. */
  compact_at: number;
  /** How many of the last steps compaction leaves alone. */
  compact_keep: number;
  /** Never, whatever else allows it. */
  deny: (Rule)[];
  /** Tokens to reserve for an answer. */
  max_output: number;
  /** Model requests for one prompt. */
  max_steps: number;
  /** Who is asked, and for what. */
  mode: Mode;
  /** `provider/model` in use. */
  model: string;
  /** Tokens that count for one picture. */
  picture_tokens: number;
  /** Whether it is a planner's. */
  planner: Planner | null;
  /** What the model costs, if known. */
  price: Price | null;
  /** Which subset of tools and prompts; empty: as the model's check found best. */
  profile: string;
  /** How well commands must be confined. */
  sandbox: Sandbox;
  /** How many of the last answers a new one is compared with, to notice a model that is stuck. */
  stall_window: number;
  /** Characters of the first prompt that become the title. */
  title_chars: number;
  /** Bytes that count as one token where the provider does not say: a setting, so that a better guess changes no old log. */
  token_bytes: number;
  /** Commands that must pass before the work counts as done. */
  verify: (string)[];
  /** How often verification may fail. */
  verify_tries: number;
  /** Tokens that the model holds, if known. */
  window: number | null;
}

/** Some settings to change. */
export interface ConfigPatch {
  /** Always, by rules that the person made before. */
  allow: (Rule)[];
  /** Somebody can answer: limits and budgets become questions instead of ends. */
  attended: boolean;
  /** Whether the checks are run before the work, too, on a copy of the files. */
  baseline: boolean;
  /** Where its conversation lies, if it may be carried. */
  bridge: Bridge | null;
  /** Bounds on use. */
  budget: Budget;
  /** Whether the workspace's state is kept after each change. */
  checkpoints: boolean;
  /** Percent of the window at which the conversation is compacted. */
  compact_at: number;
  /** How many of the last steps compaction leaves alone. */
  compact_keep: number;
  /** Never, whatever else allows it. */
  deny: (Rule)[];
  /** Tokens to reserve for an answer. */
  max_output: number;
  /** Model requests for one prompt. */
  max_steps: number;
  /** Who is asked, and for what. */
  mode: Mode;
  /** `provider/model` in use. */
  model: string;
  /** Tokens that count for one picture. */
  picture_tokens: number;
  /** Whether it is a planner's. */
  planner: Planner | null;
  /** What the model costs, if known. */
  price: Price | null;
  /** Which subset of tools and prompts; empty: as the model's check found best. */
  profile: string;
  /** How well commands must be confined. */
  sandbox: Sandbox;
  /** How many of the last answers a new one is compared with, to notice a model that is stuck. */
  stall_window: number;
  /** Characters of the first prompt that become the title. */
  title_chars: number;
  /** Bytes that count as one token where the provider does not say: a setting, so that a better guess changes no old log. */
  token_bytes: number;
  /** Commands that must pass before the work counts as done. */
  verify: (string)[];
  /** How often verification may fail. */
  verify_tries: number;
  /** Tokens that the model holds, if known. */
  window: number | null;
}

/** Settings changed. */
export interface Configured {
  /** Only what changed. */
  set: ConfigPatch;
}

/** The person said to go on after an end. */
export type Continued = { [key: string]: never };

/** The session began. */
export interface Created {
  /** The release that made it. */
  app: string;
  /** The commit that the folder's repository stood at, if it is one. */
  base?: string | null;
  /** Its settings, whole. */
  config: Config;
  /** The folder it works in. */
  workspace: string;
}

/** Something live that is not an event: it is never stored. */
export type Delta = {
  text: {
    /** Which try at it. */
    attempt: number;
    /** Where this piece begins. */
    offset: number;
    /** The step. */
    step: Step;
    /** The piece. */
    text: string;
  };
} | {
  reasoning: {
    /** Which try at it. */
    attempt: number;
    /** Where this piece begins. */
    offset: number;
    /** The step. */
    step: Step;
    /** The piece. */
    text: string;
  };
} | {
  output: {
    /** The call. */
    call: CallId;
    /** Where this piece begins. */
    offset: number;
    /** `out` or `err`. */
    stream: string;
    /** The piece. */
    text: string;
  };
} | {
  notice: {
    /** The line. */
    text: string;
  };
};

/** Why work ended. */
export type EndReason = "done" | "stopped" | {
  failed: {
    /** What to do about it. */
    error: string;
  };
} | "limit" | "budget" | "unproven";

/** Work ended; the session rests. */
export interface Ended {
  /** Prompts that no step has told yet wait for the next one, instead of making a step due now. */
  hold?: boolean;
  /** Whether it was checked. */
  proof: Proof;
  /** Why. */
  reason: EndReason;
}

/** Why a request came to nothing. */
export type Failure = "interrupted" | "overflow" | "rejected" | "transport";

/** A call ended; this is what the model is told of it. */
export interface Finished {
  /** The files right before it ran, where they were not as they had last been kept: others changed them. */
  before?: Tree | null;
  /** Which. */
  call: CallId;
  /** The files as a check found them, where it changed them itself: it says nothing of those it left. */
  checked_tree?: Tree | null;
  /** What an edit changed, as a unified diff, for doors. */
  diff?: Hash | null;
  /** The program's exit code. */
  exit?: number | null;
  /** All of the output, where `shown` is not all. */
  full?: Hash | null;
  /** How it was confined. */
  isolation?: Isolation | null;
  /** How long it took. */
  ms: number;
  /** How. */
  outcome: Outcome;
  /** Files as the model knows them now: read, written, or shown because an edit did not fit. */
  seen_files?: (SeenFile)[];
  /** The exact text for the model, fixed here. */
  shown: string;
  /** Which of the output came from which stream, where both spoke: `[["out", 12], ["err", 4], ...]`, in bytes. */
  streams?: Hash | null;
  /** The files as they were, for a check. */
  tree?: Tree | null;
}

/** The session began as a branch of another, whose conversation up to an event is its own past. */
export interface Forked {
  /** The release that made it. */
  app: string;
  /** The last event that they share. */
  at: number;
  /** Its settings, whole. */
  config: Config;
  /** The session it came from. */
  from: SessionId;
  /** Steps are counted on from here, so that ids stay unique across both. */
  step: Step;
  /** The folder it works in. */
  workspace: string;
}

/** What a door receives. */
export type Frame = {
  event: Record;
} | {
  partial: Partial;
} | {
  delta: Delta;
} | {
  accepted: {
    /** Which. */
    id: InputId;
    /** The last event that it made. */
    seq: number;
  };
} | {
  refused: {
    /** Which. */
    id: InputId;
    /** The questions that stand now. */
    questions: (QuestionId)[];
    /** Why not. */
    reason: Refused;
    /** The version now. */
    version: number;
  };
} | "lagged" | "closing";

/** A rule holds from now on. */
export interface Granted {
  /** The rule. */
  rule: Rule;
}

/** The answer to a [`Hello`]. */
export type Greeting = {
  welcome: {
    /** The owner's release. */
    app: string;
    /** The protocol spoken. */
    link: number;
    /** The owner. */
    owner: Owner;
    /** Events so far. */
    seq: number;
  };
} | {
  mismatch: {
    /** The owner's release. */
    app: string;
    /** What the owner speaks. */
    link: number;
  };
} | "wrong_session";

/** BLAKE3, in hexadecimal digits. */
export type Hash = string;

/** A command: minted by its sender. */
export type InputId = string;

/** The person wants everything under way to stop. */
export type InterruptRequested = { [key: string]: never };

/** How well a command is confined, A best. */
export type Isolation = "A" | "B" | "C" | "D";

/** Something that a call would lose. */
export type Loss = {
  deletes: {
    /** How many. */
    files: number;
    /** There are more: patterns, or too many to count. */
    more: boolean;
    /** Of those, files that git does not track. */
    untracked: number;
  };
} | {
  deletes_untracked: {
    /** How many. */
    files: number;
  };
} | {
  discards_changes: {
    /** Staged files; others are not counted. */
    staged: number;
  };
} | "discards_stash";

/** Who is asked, and for what. */
export type Mode = "read" | "ask" | "edits" | "auto" | "all";

/** The session was carried here from elsewhere. */
export interface Moved {
  /** What was proven there counts here: it is the person's own session, and nothing was taken out of its files. */
  proven?: boolean;
  /** The folder it works in from now on. */
  workspace: string;
}

/** What a reader must do with an event that it does not know. */
export type Need = "must" | "may";

/** Something the model should know came to light: changed instructions, tools, folder. */
export interface Noticed {
  /** What a preamble would be made of now, if this tells of a change of that. */
  sources?: (Source)[];
  /** That nothing changes any more: said once before the person is asked. */
  stalled?: boolean;
  /** What. */
  text: string;
}

/** A request was written down for a person, who carries it to a chat and brings the answer back. */
export interface OutboxWritten {
  /** The file in which the answer is expected. */
  inbox: string;
  /** The file to carry away; further parts lie beside it. */
  outbox: string;
  /** How many files the request is. */
  parts: number;
  /** The step. */
  step: Step;
}

/** How a call ended. */
export type Outcome = "done" | "failed" | {
  declined: {
    /** And why. */
    note?: string | null;
  };
} | "interrupted" | "not_run" | "unknown";

/** A process that drives a session. */
export type Owner = string;

/** A process took the session over. */
export interface OwnerChanged {
  /** Its release. */
  app: string;
  /** How well it can confine commands. */
  isolation: Isolation;
  /** What a request may have used that was under way when the process before was gone. */
  lost?: Reserved;
  /** It, now. */
  owner: Owner;
  /** Its system. */
  platform: string;
}

/** One piece of an answer, in the order it came. */
export type Part = {
  reasoning: {
    /** What must go back to its maker untouched. */
    opaque?: string | null;
    /** Readable, if the provider shows it. */
    text: string;
  };
} | {
  text: {
    /** The words. */
    text: string;
  };
} | {
  call: CallPart;
};

/** All that came live so far of one piece of work. */
export type Partial = {
  step: {
    /** Which try at it. */
    attempt: number;
    /** What was thought. */
    reasoning: string;
    /** The step. */
    step: Step;
    /** What was said. */
    text: string;
  };
} | {
  call: {
    /** The call. */
    call: CallId;
    /** Bytes so far, dropped ones included. */
    offset: number;
    /** The last of it. */
    tail: string;
  };
};

/** One step of the plan that doors show. */
export interface PlanStep {
  /** How far: `pending`, `active` or `done`. */
  state: string;
  /** What. */
  text: string;
}

/** The model set its list of steps. */
export interface Planned {
  /** All of them. */
  steps: (PlanStep)[];
}

/** A session that plans, acts on the plan and looks at what came of it, until the checks pass. */
export interface Planner {
  /** Programs that the person lets a planner use although it is denied them. */
  allow?: (string)[];
  /** The file of its memory, below `.dunnock/agent-memory`. */
  file: string;
  /** What earlier runs of the same task left there, as this one found it. */
  memory?: string;
}

/** System text, tools and instructions as rendered: a blob, named here. */
export interface Preamble {
  /** Its length in bytes. */
  bytes: number;
  /** How calls are written. */
  dialect: string;
  /** The first byte that differs from the preamble before, if there was one. */
  first_changed?: number | null;
  /** The blob with the exact bytes. */
  hash: Hash;
  /** The longest answer that is asked for, in tokens, where one is. */
  max_output?: number | null;
  /** `provider/model`. */
  model: string;
  /** Which subset of tools and prompts. */
  profile: string;
  /** Why there is a new one. */
  reason: string;
  /** What it was made of, so that a change of any of it can be noticed. */
  sources?: (Source)[];
  /** Every tool it offers. */
  tools: (Tool)[];
  /** The release that rendered it. */
  version: string;
  /** A person carries requests and answers: whoever waits for one may leave meanwhile. */
  via_bridge?: boolean;
  /** Tokens that the model holds, where the server or a table says. */
  window?: number | null;
  /** How the model is reached. */
  wire: string;
}

/** A preamble was rendered and is in use from here on. */
export interface PreambleSet {
  /** It. */
  preamble: Preamble;
}

/** What a model costs, in millionths of a US dollar per million tokens. */
export interface Price {
  /** For tokens sent that the server had cached. */
  cached: number;
  /** For tokens sent. */
  input: number;
  /** For tokens received. */
  output: number;
  /** For tokens sent that the server puts into its cache. */
  written: number;
}

/** The person said something. */
export interface Prompted {
  /** Pictures, as blobs. */
  images?: (Hash)[];
  /** The words. */
  text: string;
}

/** What is known of the work's correctness. */
export type Proof = "none" | "proven" | "failed";

/** One question to the person, counted from 1 through the whole session. */
export type QuestionId = number;

/** What a question is about, with everything that an interface shows of it. */
export type QuestionKind = {
  approval: Approval;
} | {
  person: {
    /** The call. */
    call: CallId;
    /** Answers to choose from, if there are any. */
    choices?: (string)[];
    /** What the model asks, in its own words. */
    text: string;
  };
} | {
  unknown: {
    /** The calls. */
    calls: (CallId)[];
  };
} | {
  limit: {
    /** The limit. */
    steps: number;
  };
} | "budget" | {
  stalled: {
    /** How often. */
    times: number;
  };
} | {
  trust: {
    /** Hash of what it has. */
    content: Hash;
  };
};

/** Why a person is asked. */
export type Reason = "requests_network" | {
  uses_network: {
    /** The program. */
    program: string;
  };
} | {
  contacts_remote: {
    /** The git command. */
    command: string;
  };
} | {
  discards_work: {
    /** The git command. */
    command: string;
  };
} | "changes_git_config" | "git_unprotected" | "deletes_folder" | "names_secret" | {
  acts_on_machine: {
    /** The program. */
    program: string;
  };
} | {
  edits_protected: {
    /** Its name, as our list has it. */
    file: string;
  };
} | "names_protected" | {
  may_be_denied: {
    /** The rule. */
    rule: string;
  };
} | "feeds_process" | "mode_ask" | "mode_edits" | "no_sandbox";

/** A stored event. */
export interface Record {
  /** When it was recorded; orders nothing. */
  at: At;
  /** It. */
  body: unknown;
  /** What made it. */
  cause: string;
  /** Its name. */
  kind: string;
  /** What a reader must do that does not know it. */
  need: Need;
  /** The chain up to the event before. */
  prev: Hash;
  /** Its place, from 1. */
  seq: number;
  /** The version of its form. */
  v: number;
}

/** What becomes of a call that was started by a process that is gone. */
export type Recovery = "repeat" | "rejoin" | "unknown";

/** Why an input was not taken. A value, not a failure: the door shows it, with the current state. */
export type Refused = "no_session" | "read_only" | {
  stale: {
    /** The version now. */
    version: number;
  };
} | "no_question" | "changed" | "invalid_answer" | "busy" | "nothing_to_continue" | "no_such_point" | "budget" | "invalid" | "not_running" | "not_owner";

/** The person answered a question. */
export interface Replied {
  /** How. */
  answer: Answer;
  /** What the model should know of it. */
  note?: string | null;
  /** Which. */
  question: QuestionId;
}

/** The kinds of requests. Each has its own heading and its own label for a yes. */
export type RequestKind = "unsandboxed" | "network" | "secrets" | "protected" | "extra_access" | "destructive" | "command" | "edit" | "edit_and_delete" | "deletion" | "move" | "process_input" | {
  tool: {
    /** Its name, from the list of tools that the session offers. */
    name: string;
  };
};

/** An amount held back before a request goes out. */
export interface Reserved {
  /** Millionths of a US dollar; 0 when the price is unknown. */
  micros: number;
  /** Tokens in and out. */
  tokens: number;
}

/** A rule no longer holds. */
export interface Revoked {
  /** The rule. */
  rule: Rule;
}

/** The session could not go back; nothing changed. */
export interface RewindFailed {
  /** Why. */
  error: string;
}

/** The person wants to go back. */
export interface RewindRequested {
  /** Also what others changed since. */
  force: boolean;
  /** What is meant. */
  scope: Scope;
  /** The events that will count as said, in full; what follows the rewind counts too. */
  spans: (Span)[];
  /** Where to, as the person said it. */
  to?: RewindTo | null;
  /** The state of the files to return to, if files are meant. */
  tree: Tree | null;
}

/** Where a rewind goes. */
export type RewindTo = {
  event: number;
} | "undo";

/** The session went back. */
export interface Rewound {
  /** What was kept, left out or could not be restored, in words. */
  note?: string | null;
  /** The events that count as said, in full. */
  spans: (Span)[];
  /** The state of the files now. */
  tree: Tree | null;
  /** The state of the files before: the way back. */
  undo: Tree | null;
}

/** What a tool means to the session itself. */
export type Role = "work" | "ask_person" | "plan" | "final";

/** A shape of call, by parsed words: granted or denied. */
export interface Rule {
  /** What calls of this shape are granted beyond the sandbox. */
  access?: Access;
  /** The tool it speaks of. */
  tool: string;
  /** The first words of every simple command; empty matches any call of the tool. */
  words: (string)[];
}

/** How well commands must be confined before they run at all. */
export type Sandbox = "auto" | "off" | {
  require: Isolation;
};

/** What a rewind takes back. */
export type Scope = "files" | "conversation" | "both";

/** A file that the model has seen. */
export interface SeenFile {
  /** What it held. */
  hash: Hash;
  /** Below the root. */
  path: string;
}

/** A session. */
export type SessionId = string;

/** The new text of an old result. */
export interface Shortened {
  /** The call. */
  call: CallId;
  /** What the model is shown from now on. */
  shown: string;
}

/** Something that a preamble is made of: a file of instructions, a prompt, the tools, the program. */
export interface Source {
  /** Of its text. */
  hash: Hash;
  /** What. */
  name: string;
}

/** A range of events, both ends included. */
export interface Span {
  /** First. */
  from: number;
  /** Last. */
  to: number;
}

/** A process began a call. */
export interface Started {
  /** Which. */
  call: CallId;
  /** The process. */
  owner: Owner;
  /** What becomes of it if that process dies. */
  recovery: Recovery;
}

/** One model request, counted from 1 through the whole session. */
export type Step = number;

/** The request came to nothing. */
export interface StepFailed {
  /** Every try. */
  attempts: (Attempt)[];
  /** In words, with what to do. */
  error: string;
  /** What kind. */
  failure: Failure;
  /** The answer had begun and did not come to its end, so that what it used is not known. */
  incomplete?: boolean;
  /** What it may have used beyond that, then. */
  lost?: Reserved;
  /** What had arrived: text only, never a call. */
  partial?: string;
  /** When it is worth trying again, if it is. */
  retry_at?: At | null;
  /** The step. */
  step: Step;
  /** What it used. */
  usage: Usage;
}

/** A request to the model is pinned: it is a function of the preamble and the events up to `upto`. */
export interface StepStarted {
  /** The preamble it uses. */
  preamble: Hash;
  /** What the budget holds back for it. */
  reserved: Reserved;
  /** Its number. */
  step: Step;
  /** The last event that the request tells of. */
  upto: number;
}

/** Why the model stopped. */
export type Stop = "end" | "calls" | "length" | "filter" | {
  other: string;
};

/** How hard the conversation is compacted. */
export type Strength = "shorten" | "summarise";

/** The time to try again has come. */
export interface TimerFired {
  /** The moment that was waited for. */
  at: At;
}

/** The session has a title. */
export interface Titled {
  /** The title. */
  title: string;
}

/** What the core must know of a tool; recorded with the preamble, so that old calls keep their meaning. */
export interface Tool {
  /** Reader or writer, edit or command. */
  class: Class;
  /** What it starts keeps running after the call. */
  leaves_process?: boolean;
  /** As the model calls it. */
  name: string;
  /** It only waits for such a process: the same result twice is no lack of progress. */
  polls?: boolean;
  /** After a crash. */
  recovery: Recovery;
  /** Whether the session itself answers it. */
  role: Role;
}

/** Names the state of a workspace's files, as the checkpoint store knows it. */
export type Tree = string;

/** What a client sends. */
export type Up = {
  command: CommandRequest;
};

/** What a request used. */
export interface Usage {
  /** Of those, tokens the server had cached. */
  cached: number;
  /** Tokens sent, cached ones included. */
  input: number;
  /** Tokens received, reasoning included. */
  output: number;
  /** Of those, reasoning. */
  reasoning: number;
  /** Of the tokens sent, those that the server put into its cache and charges for. */
  written?: number;
}

/** The body of an event, by its kind. */
export interface EventBodies {
  created: Created;
  forked: Forked;
  moved: Moved;
  configured: Configured;
  preamble_set: PreambleSet;
  prompted: Prompted;
  continued: Continued;
  step_started: StepStarted;
  outbox_written: OutboxWritten;
  answered: Answered;
  step_failed: StepFailed;
  timer_fired: TimerFired;
  asked: Asked;
  replied: Replied;
  granted: Granted;
  revoked: Revoked;
  allowed: Allowed;
  check_called: CheckCalled;
  started: Started;
  finished: Finished;
  planned: Planned;
  interrupt_requested: InterruptRequested;
  ended: Ended;
  owner_changed: OwnerChanged;
  checkpointed: Checkpointed;
  baselined: Baselined;
  rewind_requested: RewindRequested;
  rewound: Rewound;
  rewind_failed: RewindFailed;
  compaction_started: CompactionStarted;
  compacted: Compacted;
  compaction_failed: CompactionFailed;
  titled: Titled;
  noticed: Noticed;
}

/** An event whose kind this release knows. */
export type KnownEvent = { [K in keyof EventBodies]: Record & { kind: K; body: EventBodies[K] } }[keyof EventBodies];

// Made by `cargo xtask generate` from crates/dunnock-proto. Do not edit.

/** What a client of the live channel sends is `Up`; it receives `Greeting` first, and then `Frame`. */

/** What a call is granted beyond the sandbox. */
export interface Access {
  /** Of these, only the configuration of git repositories. */
  git_config?: boolean;
  /** Of the network, only these hosts. */
  hosts?: HostSet;
  /** The person's own login for the program that runs. */
  login?: boolean;
  /** The machine's network. */
  network: boolean;
  /** Files outside the workspace, for a tool that runs no command. */
  outside?: boolean;
  /** Files in the workspace that other programs run or follow. */
  protected: boolean;
  /** The whole repository, if the workspace is only a folder of it. */
  repository?: boolean;
  /** Secret files in the workspace. */
  secrets: boolean;
  /** The whole machine: no sandbox at all. */
  unsandboxed: boolean;
}

/** A call may run. */
export interface Allowed {
  /** Exactly what the call is granted beyond the sandbox, as it was shown. */
  access?: Access;
  /** The arguments, if the person changed them. */
  args?: string | null;
  /** Who or what allowed it. */
  by: AllowedBy;
  /** Which call. */
  call: CallId;
  /** Hash of the tool and arguments that were approved: nothing else runs. */
  hash: Hash;
  /** How commands were isolated at approval: the call does not run with weaker isolation. */
  isolation?: Isolation | null;
  /** A file tool may read a secret. */
  reads_secret?: boolean;
}

/** Who or what allowed a call. */
export type AllowedBy = {
  policy: string;
} | {
  grant: Rule;
} | {
  person: QuestionId;
} | "harness";

/** The person's answer. */
export type Answer = "yes" | "no" | "wider" | {
  always: {
    /** The rule, as it was shown. */
    rule: Rule;
  };
} | {
  edit: {
    /** The arguments. */
    args: string;
  };
} | {
  text: {
    /** The text. */
    text: string;
  };
};

/** The model answered. */
export interface Answered {
  /** Every attempt; the last one succeeded. */
  attempts: (Attempt)[];
  /** The server refused the reasoning effort, so later requests to this model leave it out. */
  effort_refused?: boolean;
  /** The answer as the server sent it, item by item, if it must go back in the same form. */
  items?: (string)[];
  /** The model that answered. */
  model: string;
  /** The parts of the answer, in order. */
  parts: (Part)[];
  /** The raw response, if the settings ask for it. */
  raw?: Hash | null;
  /** The hash of the request's bytes. */
  request: Hash;
  /** What is known of the servers' tools that its calls use. */
  server_tools?: (ServerTool)[];
  /** The step. */
  step: Step;
  /** Why it stopped. */
  stop: Stop;
  /** Usage of all attempts. */
  usage: Usage;
  /** The wire protocol: opaque parts are only sent back to the model that produced them. */
  wire: string;
}

/** A call waiting for the person's approval, and what a yes means. */
export interface Approval {
  /** Exactly what a yes grants beyond the sandbox. */
  access?: Access;
  /** The call. */
  call: CallId;
  /** Hash of the tool and arguments that a yes approves. */
  call_hash: Hash;
  /** How the call is isolated, if it runs a program. */
  isolation?: Isolation | null;
  /** What would happen, where that could be determined in advance. */
  preview?: (CallPreview)[];
  /** The command may run code of the project, which then has this access too. */
  project_code?: boolean;
  /** Why approval is needed, most important reason first. */
  reasons: (Reason)[];
  /** What kind of request it is. */
  request: RequestKind;
  /** The rule that "always" would create, unless that rule would match everything. */
  rule?: Rule | null;
  /** What the person may grant instead: the network, where `access` has only named hosts of it. */
  wider?: Access;
}

/** A question to the person is open. */
export interface Asked {
  /** Hash of the question; an answer must name it. */
  hash: Hash;
  /** What it is about, with everything that is shown. */
  kind: QuestionKind;
  /** The id of the question. */
  question: QuestionId;
}

/** A moment, in milliseconds since 1970 (UTC). It does not define an order: [`Seq`] does. */
export type At = number;

/** One attempt at a request. */
export interface Attempt {
  /** When it started. */
  at: At;
  /** What went wrong, if anything. */
  error?: string | null;
  /** How long it took. */
  ms: number;
  /** What it used. */
  usage: Usage;
}

/** The result of one check before any work was done. */
export interface Baseline {
  /** The command. */
  command: string;
  /** Its exit code. */
  exit?: number | null;
  /** How long it took. */
  ms: number;
  /** How it ended. */
  outcome: Outcome;
  /** Its output. */
  shown: string;
}

/** The checks were run on a copy of the files from before the work. */
export interface Baselined {
  /** Each check, in order; empty if the copy could not be made. */
  checks: (Baseline)[];
  /** Why there are none, or what the copy lacks. */
  note?: string | null;
  /** Hash of the commands to run. */
  of: Hash;
  /** The files. */
  tree: Tree;
}

/** Where a copy-and-paste session keeps its files, and how much of them is shown at once. */
export interface Bridge {
  /** The absolute path of the folder with outboxes and inboxes. */
  folder: string;
  /** Characters of a command's output to show. */
  output: number;
  /** Characters per part of an outbox. */
  size: number;
  /** Seconds that a command may take. */
  timeout: number;
}

/** Limits on what a session may use; an absent field means no limit. */
export interface Budget {
  /** Millionths of a US dollar. */
  micros: number | null;
  /** Milliseconds of model and tool time. */
  ms: number | null;
  /** Tokens in and out. */
  tokens: number | null;
}

/** The id of a call, written STEP.INDEX. */
export type CallId = string;

/** A call of the model. */
export interface CallPart {
  /** The arguments with which it runs, as the exact text. */
  args: string;
  /** Why this cannot be run, for the model: it was meant as a call but is not a valid one. */
  fault?: string | null;
  /** The provider's id for the call: data, never a key. */
  id: string;
  /** Whether the call was found in plain text instead of being sent as a call. */
  recovered?: boolean;
  /** The call as the model wrote it, if it was translated to one of our tools. */
  sent?: SentCall | null;
  /** The tool that runs. */
  tool: string;
}

/** Something that a call would do: mostly, what it would destroy. */
export type CallPreview = {
  runs: {
    /** Its full path. */
    program: string;
  };
} | {
  uses_login: {
    /** What it is. */
    what: string;
  };
} | "finds_no_login" | {
  deletes: {
    /** How many. */
    files: number;
    /** There are more: the command uses patterns, or there were too many files to count. */
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
    /** Staged files; other changes are not counted. */
    staged: number;
  };
} | "discards_stash" | {
  uses_server: {
    /** What it is granted. */
    access: string;
    /** Its command or its address. */
    target: string;
  };
} | {
  description_changed: {
    /** As it is now. */
    after: string;
    /** As it was when the tool was last used. */
    before: string;
    /** What changed: the description, the schema or a hint. */
    part: string;
  };
};

/** The harness made a call of its own: a check of the finished work. */
export interface CheckCalled {
  /** The arguments. */
  args: string;
  /** Its id, numbered after the answer's own calls. */
  call: CallId;
  /** Whether it reads or writes. */
  class: Class;
  /** What to do with it after a crash. */
  recovery: Recovery;
  /** The tool. */
  tool: string;
  /** Which attempt at verification this is, from 1. */
  tried: number;
}

/** A checkpoint of the workspace was saved, or could not be. */
export interface Checkpointed {
  /** The event after which the checkpoint was due. */
  mark: number;
  /** What could not be saved, as text. */
  note?: string | null;
  /** The state of the files; absent if it could not be saved. */
  tree: Tree | null;
}

/** What a call may do to the workspace. */
export type Class = "read" | "edit" | "command";

/** What a user can do to a session. */
export type Command = {
  prompt: {
    /** Images, as blobs. */
    images?: (Hash)[];
    /** The text of the prompt. */
    text: string;
  };
} | "run" | {
  reply: {
    /** The answer. */
    answer: Answer;
    /** Hash of the question as it was shown. */
    hash: Hash;
    /** A note about the answer for the model. */
    note?: string | null;
    /** Which question. */
    question: QuestionId;
  };
} | "interrupt" | {
  rewind: {
    /** Also overwrite changes that others made since. */
    force: boolean;
    /** What to rewind. */
    scope: Scope;
    /** Where to rewind to. */
    to: RewindTo;
  };
} | "compact" | {
  configure: {
    /** Only the settings that change. */
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

/** A command with an id chosen by its sender. Sending it twice returns the first result again. */
export interface CommandRequest {
  /** What to do. */
  command: Command;
  /** The version that the sender saw. The command is refused if the session has changed since. */
  expect?: number | null;
  /** Chosen by the sender. */
  id: InputId;
}

/** The conversation was compacted. */
export interface Compacted {
  /** Bytes of conversation after: fewer than before. */
  after: number;
  /** Bytes of conversation before. */
  before: number;
  /** What must not depend on a model's summary, verbatim: the task, the person's answers, the plan, changed files. */
  notes?: string | null;
  /** The preamble from here on. */
  preamble: Preamble;
  /** Results that were shortened. */
  shortened?: (Shortened)[];
  /** The summary that replaces everything up to `upto`, if there is one. */
  summary?: string | null;
  /** The last event it covers. */
  upto: number;
  /** What the request for the summary used. */
  usage?: Usage;
}

/** The conversation could not be compacted; it is unchanged. */
export interface CompactionFailed {
  /** Why. */
  error: string;
  /** The summary started but was not completed. */
  incomplete?: boolean;
  /** What it may have used in addition, in that case. */
  lost?: Reserved;
  /** What the request for a summary used. */
  usage?: Usage;
}

/** The conversation up to the end of a step is being compacted. */
export interface CompactionStarted {
  /** Whether the user asked for it. */
  asked: boolean;
  /** The part of the budget that is reserved for it. */
  reserved?: Reserved;
  /** How strongly. */
  strength: Strength;
  /** The last event it covers: always the end of a step, so that no call loses its result. */
  upto: number;
}

/** All settings of a session. The defaults are for tests and interfaces; a log records the values. Only a setting that is newer than a log is missing there, and its default is what its absence meant. */
export interface Config {
  /** Rules for calls that are always allowed, saved by the person earlier. */
  allow: (Rule)[];
  /** Whether somebody can answer: limits and budgets then become questions instead of ending the work. */
  attended: boolean;
  /** Whether the checks are also run before the work, on a copy of the files. */
  baseline: boolean;
  /** Where its copy-and-paste files are, if it may use a chat that way. */
  bridge: Bridge | null;
  /** Limits on usage. */
  budget: Budget;
  /** Whether the workspace's state is saved after each change. */
  checkpoints: boolean;
  /** Percent of the window at which the conversation is compacted. */
  compact_at: number;
  /** How many of the last steps compaction leaves alone. */
  compact_keep: number;
  /** When the work has to end. */
  deadline: Deadline | null;
  /** Rules for calls that are always denied, whatever else allows them. */
  deny: (Rule)[];
  /** How hard the model is asked to think; if `null`, the default of this release. */
  effort: Effort | null;
  /** Which files the file tools can reach. */
  file_access: FileAccess;
  /** Hosts that every command in the sandbox may reach, and from which pages may be fetched. */
  hosts: HostSet;
  /** Tokens to reserve for an answer. */
  max_output: number;
  /** The maximum number of model requests for one prompt. */
  max_steps: number;
  /** The approval mode: which calls need the person's approval. */
  mode: Mode;
  /** `provider/model` in use. */
  model: string;
  /** Tokens that count for one image. */
  picture_tokens: number;
  /** The planner's settings, if this is a planner session. */
  planner: Planner | null;
  /** What the model costs, if known. */
  price: Price | null;
  /** Which subset of tools and prompts; empty means whichever the model's check found best. */
  profile: string;
  /** How well commands must be isolated. */
  sandbox: Sandbox;
  /** Whether an unattended model checks its work once more when it first says that it is done. */
  second_look: boolean;
  /** The names of the MCP servers whose tools the model may find and use. */
  servers: (string)[];
  /** Whether an unattended model first learns what is on the machine and in the folder. */
  snapshot: boolean;
  /** How many answers in a row may repeat each other before the person is asked; 0 for no limit. */
  stall_limit: number;
  /** How many previous answers a new one is compared with, to detect a model that is stuck. */
  stall_window: number;
  /** Characters of the first prompt that become the title. */
  title_chars: number;
  /** Bytes that count as one token if the provider does not say: a setting, so that a better estimate changes no old log. */
  token_bytes: number;
  /** Which tools the model is offered; empty means those that it was trained on. */
  tool_set: string;
  /** Whether nothing waits for a person: what would need approval is refused, questions are answered by the harness, and an answer that ends the work too early is sent back. */
  unattended: boolean;
  /** Commands that must pass before the work counts as done. */
  verify: (string)[];
  /** How often verification may fail. */
  verify_tries: number;
  /** A call that succeeds after this many milliseconds may be waiting for something; repeating it is not a stall. */
  waiting_ms: number;
  /** Whether the model may fetch pages of the web; the person allows each host. */
  web_fetch: boolean;
  /** The model's context window in tokens, if known. */
  window: number | null;
}

/** Some settings to change. */
export interface ConfigPatch {
  /** Rules for calls that are always allowed, saved by the person earlier. */
  allow: (Rule)[];
  /** Whether somebody can answer: limits and budgets then become questions instead of ending the work. */
  attended: boolean;
  /** Whether the checks are also run before the work, on a copy of the files. */
  baseline: boolean;
  /** Where its copy-and-paste files are, if it may use a chat that way. */
  bridge: Bridge | null;
  /** Limits on usage. */
  budget: Budget;
  /** Whether the workspace's state is saved after each change. */
  checkpoints: boolean;
  /** Percent of the window at which the conversation is compacted. */
  compact_at: number;
  /** How many of the last steps compaction leaves alone. */
  compact_keep: number;
  /** When the work has to end. */
  deadline: Deadline | null;
  /** Rules for calls that are always denied, whatever else allows them. */
  deny: (Rule)[];
  /** How hard the model is asked to think; if `null`, the default of this release. */
  effort: Effort | null;
  /** Which files the file tools can reach. */
  file_access: FileAccess;
  /** Hosts that every command in the sandbox may reach, and from which pages may be fetched. */
  hosts: HostSet;
  /** Tokens to reserve for an answer. */
  max_output: number;
  /** The maximum number of model requests for one prompt. */
  max_steps: number;
  /** The approval mode: which calls need the person's approval. */
  mode: Mode;
  /** `provider/model` in use. */
  model: string;
  /** Tokens that count for one image. */
  picture_tokens: number;
  /** The planner's settings, if this is a planner session. */
  planner: Planner | null;
  /** What the model costs, if known. */
  price: Price | null;
  /** Which subset of tools and prompts; empty means whichever the model's check found best. */
  profile: string;
  /** How well commands must be isolated. */
  sandbox: Sandbox;
  /** Whether an unattended model checks its work once more when it first says that it is done. */
  second_look: boolean;
  /** The names of the MCP servers whose tools the model may find and use. */
  servers: (string)[];
  /** Whether an unattended model first learns what is on the machine and in the folder. */
  snapshot: boolean;
  /** How many answers in a row may repeat each other before the person is asked; 0 for no limit. */
  stall_limit: number;
  /** How many previous answers a new one is compared with, to detect a model that is stuck. */
  stall_window: number;
  /** Characters of the first prompt that become the title. */
  title_chars: number;
  /** Bytes that count as one token if the provider does not say: a setting, so that a better estimate changes no old log. */
  token_bytes: number;
  /** Which tools the model is offered; empty means those that it was trained on. */
  tool_set: string;
  /** Whether nothing waits for a person: what would need approval is refused, questions are answered by the harness, and an answer that ends the work too early is sent back. */
  unattended: boolean;
  /** Commands that must pass before the work counts as done. */
  verify: (string)[];
  /** How often verification may fail. */
  verify_tries: number;
  /** A call that succeeds after this many milliseconds may be waiting for something; repeating it is not a stall. */
  waiting_ms: number;
  /** Whether the model may fetch pages of the web; the person allows each host. */
  web_fetch: boolean;
  /** The model's context window in tokens, if known. */
  window: number | null;
}

/** Settings changed. */
export interface Configured {
  /** Only the settings that changed. */
  set: ConfigPatch;
}

/** The user asked to continue after the work ended. */
export type Continued = { [key: string]: never };

/** The session was created. */
export interface Created {
  /** The release that created it. */
  app: string;
  /** The commit that the folder's repository was at, if the folder is a repository. */
  base?: string | null;
  /** All of its settings. */
  config: Config;
  /** The folder it works in. */
  workspace: string;
}

/** When work has to end. */
export interface Deadline {
  /** When it was set. */
  from: At;
  /** The end. */
  until: At;
}

/** A live update that is not an event: it is never stored. */
export type Delta = {
  text: {
    /** The number of the attempt. */
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
    /** The number of the attempt. */
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

/** How hard the model is asked to think before it answers. */
export type Effort = "none" | "low" | "medium" | "high" | "xhigh" | "max";

/** Why work ended. */
export type EndReason = "done" | "stopped" | {
  failed: {
    /** What happened and what to do about it. */
    error: string;
  };
} | "limit" | "budget" | "unproven" | "deadline";

/** Work ended; the session is idle. */
export interface Ended {
  /** Prompts that no step has sent yet wait for the next one, instead of starting a step now. */
  hold?: boolean;
  /** Whether the work was checked. */
  proof: Proof;
  /** Why. */
  reason: EndReason;
}

/** Why a request failed. */
export type Failure = "interrupted" | "overflow" | "rejected" | "transport";

/** Which files the file tools can reach. */
export type FileAccess = "workspace" | "machine";

/** A call ended; this is what the model is sent about it. */
export interface Finished {
  /** The files right before it ran, if others had changed them since the last checkpoint. */
  before?: Tree | null;
  /** Which call. */
  call: CallId;
  /** The files as a check found them, if it then changed them: its result says nothing about the files it left behind. */
  checked_tree?: Tree | null;
  /** What an edit changed, as a unified diff, for interfaces. */
  diff?: Hash | null;
  /** The program's exit code. */
  exit?: number | null;
  /** All of the output, if `shown` is shortened. */
  full?: Hash | null;
  /** Images that the model is shown with the text. */
  images?: (Hash)[];
  /** How it was isolated. */
  isolation?: Isolation | null;
  /** Processes that it started are still running. */
  left_process?: boolean;
  /** What it had no access to in the network. */
  missing_network?: MissingNetwork | null;
  /** How long it took. */
  ms: number;
  /** How it ended. */
  outcome: Outcome;
  /** Files as the model now knows them: read, written, or shown because an edit did not apply. */
  seen_files?: (SeenFile)[];
  /** The exact text for the model, fixed here. */
  shown: string;
  /** Which bytes of the output came from which stream, if both were used: `[["out", 12], ["err", 4], ...]`. */
  streams?: Hash | null;
  /** The files after it ran, if it is a check. */
  tree?: Tree | null;
}

/** The session was forked from another, whose conversation up to an event is its own history. */
export interface Forked {
  /** The release that created it. */
  app: string;
  /** The last event that both share. */
  at: number;
  /** All of its settings. */
  config: Config;
  /** The session it was forked from. */
  from: SessionId;
  /** A secret may have been read in the other session. */
  read_secret?: boolean;
  /** Step numbers continue from here, so that ids stay unique across both sessions. */
  step: Step;
  /** The folder it works in. */
  workspace: string;
}

/** What a client receives. */
export type Frame = {
  event: Record;
} | {
  partial: Partial;
} | {
  delta: Delta;
} | {
  accepted: {
    /** Which command. */
    id: InputId;
    /** The last event that it caused. */
    seq: number;
  };
} | {
  refused: {
    /** Which command. */
    id: InputId;
    /** The questions that are open now. */
    questions: (QuestionId)[];
    /** Why it was refused. */
    reason: Refused;
    /** The current version. */
    version: number;
  };
} | "lagged" | "closing";

/** A rule applies from now on. */
export interface Granted {
  /** The rule. */
  rule: Rule;
}

/** The answer to a [`Hello`]. */
export type Greeting = {
  welcome: {
    /** The owner's release. */
    app: string;
    /** The protocol version in use. */
    link: number;
    /** The owner. */
    owner: Owner;
    /** The number of events so far. */
    seq: number;
  };
} | {
  mismatch: {
    /** The owner's release. */
    app: string;
    /** The protocol version that the owner speaks. */
    link: number;
  };
} | "wrong_session";

/** A BLAKE3 hash in hexadecimal digits. */
export type Hash = string;

/** Hosts that may be reached: example.com, *.example.com, example.com:8443 */
export type HostRule = string;

/** All hosts that something may reach. */
export type HostSet = (HostRule)[];

/** The id of a command, chosen by its sender. */
export type InputId = string;

/** The user asked to stop all work in progress. */
export type InterruptRequested = { [key: string]: never };

/** How well a command is isolated; A is best. */
export type Isolation = "A" | "B" | "C" | "D";

/** What a call had no access to in the network. */
export type MissingNetwork = {
  hosts: HostSet;
} | "whole";

/** The approval mode: which calls need the person's approval. */
export type Mode = "read" | "ask" | "edits" | "auto" | "all";

/** The session was imported from elsewhere. */
export interface Moved {
  /** Whether proof from there still counts: it is the user's own session, and no file was left out of it. */
  proven?: boolean;
  /** The folder it works in from now on. */
  workspace: string;
}

/** What a reader must do with an event of an unknown kind. */
export type Need = "must" | "may";

/** Why a complete answer is not usable. */
export type NoAnswer = "empty" | "cut_off";

/** What a notice is for. */
export type NoticeKind = "info" | "stalled" | "unfinished" | "no_answer" | "second_look" | {
  time: {
    /** Whether only one more request follows. */
    last?: boolean;
    /** The part of the time that has passed. */
    percent: number;
  };
};

/** Something the model should know has changed: instructions, tools, folder. */
export interface Noticed {
  /** What it is for. */
  kind?: NoticeKind;
  /** What a preamble would be made of now, if this reports a change of that. */
  sources?: (Source)[];
  /** The text. */
  text: string;
}

/** A request was written to files for the user, who pastes it into a chat and pastes the answer back. */
export interface OutboxWritten {
  /** The file in which the answer is expected. */
  inbox: string;
  /** The file to paste into the chat; further parts are next to it. */
  outbox: string;
  /** How many files the request consists of. */
  parts: number;
  /** The step. */
  step: Step;
}

/** How a call ended. */
export type Outcome = "done" | "failed" | {
  declined: {
    /** The reason given. */
    note?: string | null;
  };
} | "interrupted" | "not_run" | "unknown";

/** The id of a process that drives a session. */
export type Owner = string;

/** A process took over the session. */
export interface OwnerChanged {
  /** Its release. */
  app: string;
  /** The workspace is only a folder of a git repository. */
  in_repository?: boolean;
  /** How well it can isolate commands. */
  isolation: Isolation;
  /** What a request may have used that was in progress when the previous process died. */
  lost?: Reserved;
  /** The new owner. */
  owner: Owner;
  /** Its platform. */
  platform: string;
}

/** One part of an answer, in the order received. */
export type Part = {
  reasoning: {
    /** Data that must be returned unchanged to the model that produced it. */
    opaque?: string | null;
    /** Readable text, if the provider shows it. */
    text: string;
  };
} | {
  text: {
    /** The text. */
    text: string;
  };
} | {
  call: CallPart;
};

/** All live output so far of one piece of work. */
export type Partial = {
  step: {
    /** The number of the attempt. */
    attempt: number;
    /** The reasoning so far. */
    reasoning: string;
    /** The step. */
    step: Step;
    /** The text so far. */
    text: string;
  };
} | {
  call: {
    /** The call. */
    call: CallId;
    /** Bytes so far, including dropped ones. */
    offset: number;
    /** The last part of the output. */
    tail: string;
  };
};

/** One step of the plan that interfaces show. */
export interface PlanStep {
  /** The progress: `pending`, `active` or `done`. */
  state: string;
  /** What to do. */
  text: string;
}

/** The model set its plan. */
export interface Planned {
  /** All steps. */
  steps: (PlanStep)[];
}

/** A session that plans, acts on the plan and checks the results, until the checks pass. */
export interface Planner {
  /** Programs that the user allows the planner to use although they are denied by default. */
  allow?: (string)[];
  /** Its memory file, below `.dunnock/agent-memory`. */
  file: string;
  /** What earlier runs of the same task wrote there, as this run found it. */
  memory?: string;
  /** How it works through an answer; omitted if it equals the rules of a planner. */
  steps?: StepRules;
}

/** The rendered system text, tools and instructions: a blob, identified here. */
export interface Preamble {
  /** Its length in bytes. */
  bytes: number;
  /** How calls are written. */
  dialect: string;
  /** The reasoning effort, if the model has a setting for it. */
  effort?: PreambleEffort | null;
  /** The first byte that differs from the previous preamble, if there was one. */
  first_changed?: number | null;
  /** The blob with the exact bytes. */
  hash: Hash;
  /** The hosts that commands could reach when it was rendered. */
  hosts?: HostSet;
  /** How commands are isolated, as it describes that. Sessions of older releases do not have it. */
  level?: Isolation | null;
  /** The longest answer to request, in tokens, if limited. */
  max_output?: number | null;
  /** `provider/model`. */
  model: string;
  /** Which subset of tools and prompts is used. */
  profile: string;
  /** File tools reached files outside the workspace when it was rendered. */
  reaches_machine?: boolean;
  /** Why it was rendered anew. */
  reason: string;
  /** The MCP servers that it names. */
  servers?: (string)[];
  /** What it was made of, so that a change in any of it can be detected. */
  sources?: (Source)[];
  /** Every tool that can be called, whether it is offered or not. */
  tools: (Tool)[];
  /** The release that rendered it. */
  version: string;
  /** The user copies requests and answers by hand, so a process waiting for an answer may exit meanwhile. */
  via_bridge?: boolean;
  /** The model was offered to fetch pages of the web. */
  web_fetch?: boolean;
  /** The model's context window in tokens, if the server or a table gives it. */
  window?: number | null;
  /** How the model is reached. */
  wire: string;
}

/** The effort that a preamble asks for. */
export interface PreambleEffort {
  /** The nearest one that the model knows, which is sent. */
  sent: Effort;
  /** The effort that the settings asked for. */
  wanted: Effort;
}

/** A preamble was rendered and is in use from here on. */
export interface PreambleSet {
  /** The preamble. */
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
  /** For tokens sent that the server writes to its cache. */
  written: number;
}

/** The user sent a prompt. */
export interface Prompted {
  /** Images, as blobs. */
  images?: (Hash)[];
  /** The text of the prompt. */
  text: string;
}

/** What is known about the correctness of the work. */
export type Proof = "none" | "proven" | "failed";

/** One question to the person, numbered from 1 throughout the session. */
export type QuestionId = number;

/** What a question is about, with everything that an interface shows. */
export type QuestionKind = {
  approval: Approval;
} | {
  person: {
    /** The call. */
    call: CallId;
    /** Answers to choose from, if any. */
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
    /** How many times. */
    times: number;
  };
} | {
  trust: {
    /** Hash of that content. */
    content: Hash;
  };
};

/** Why approval is needed. */
export type Reason = "requests_network" | "fetches_page" | "after_secret" | {
  was_refused: {
    /** The hosts. */
    hosts: HostSet;
  };
} | {
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
} | "changes_git_config" | {
  changes_repository: {
    /** The git command. */
    command: string;
  };
} | "git_unprotected" | "deletes_folder" | "names_secret" | "reads_outside" | "changes_outside" | {
  acts_on_machine: {
    /** The program. */
    program: string;
  };
} | {
  edits_protected: {
    /** The file's name, as in our list. */
    file: string;
  };
} | "names_protected" | {
  may_be_denied: {
    /** The rule. */
    rule: string;
  };
} | "feeds_process" | "mode_ask" | "mode_edits" | "may_do_more_than_read" | "server_tool_destroys" | "server_tool_changed" | "server_of_project" | "no_sandbox" | {
  weaker_sandbox: {
    /** The strongest level it had. */
    had: Isolation;
  };
};

/** A stored event. */
export interface Record {
  /** When it was recorded. This does not define the order of events. */
  at: At;
  /** The event itself. */
  body: unknown;
  /** What caused it. */
  cause: string;
  /** The kind of event. */
  kind: string;
  /** What a reader must do if it does not know this kind. */
  need: Need;
  /** The chain up to the previous event. */
  prev: Hash;
  /** The event's position in the log, from 1. */
  seq: number;
  /** The version of the body's format. */
  v: number;
}

/** What happens to a call whose process died. */
export type Recovery = "repeat" | "rejoin" | "unknown";

/** Why an input was refused. A value, not a failure: the interface shows it with the current state. */
export type Refused = "no_session" | "read_only" | {
  stale: {
    /** The current version. */
    version: number;
  };
} | "no_question" | "changed" | "invalid_answer" | "busy" | "nothing_to_continue" | "no_such_point" | "budget" | "invalid" | "not_running" | "not_owner";

/** The person answered a question. */
export interface Replied {
  /** The answer. */
  answer: Answer;
  /** A note about the answer for the model. */
  note?: string | null;
  /** Which question. */
  question: QuestionId;
}

/** The kinds of requests. Each has its own heading and its own label for a yes. */
export type RequestKind = "unsandboxed" | "network" | "hosts" | "secrets" | "protected" | "repository" | "login" | "extra_access" | "destructive" | "command" | "edit" | "edit_and_delete" | "deletion" | "move" | "process_input" | "page" | {
  server_tool: {
    /** The server, by its name in the settings. */
    server: string;
  };
} | {
  tool: {
    /** Its name, from the list of tools that the session offers. */
    name: string;
  };
};

/** An amount reserved before a request is sent. */
export interface Reserved {
  /** Millionths of a US dollar; 0 when the price is unknown. */
  micros: number;
  /** Tokens in and out. */
  tokens: number;
}

/** A rule no longer applies. */
export interface Revoked {
  /** The rule. */
  rule: Rule;
}

/** The rewind failed; nothing changed. */
export interface RewindFailed {
  /** Why. */
  error: string;
}

/** The user asked for a rewind. */
export interface RewindRequested {
  /** Also overwrite changes that others made since. */
  force: boolean;
  /** What to rewind. */
  scope: Scope;
  /** The events that still count after the rewind, complete; later events count too. */
  spans: (Span)[];
  /** Where to rewind to, as the user gave it. */
  to?: RewindTo | null;
  /** The state of the files to restore, if the rewind includes files. */
  tree: Tree | null;
}

/** Where a rewind leads. */
export type RewindTo = {
  event: number;
} | "undo";

/** The session was rewound. */
export interface Rewound {
  /** What was left alone, left out or could not be restored, as text. */
  note?: string | null;
  /** Some of what this session changed was not restored. */
  partial?: boolean;
  /** The events that still count, complete. */
  spans: (Span)[];
  /** The state of the files now. */
  tree: Tree | null;
  /** The state of the files before, to undo the rewind. */
  undo: Tree | null;
}

/** What a tool means to the session itself. */
export type Role = "work" | "ask_person" | "plan" | "final";

/** A pattern of calls, by parsed words, that is granted or denied. */
export interface Rule {
  /** What matching calls are granted beyond the sandbox. */
  access?: Access;
  /** The tool it applies to. */
  tool: string;
  /** The first words of every simple command; empty matches any call of the tool. */
  words: (string)[];
}

/** How well commands must be isolated before they may run. */
export type Sandbox = "auto" | "off" | {
  require: Isolation;
};

/** What a rewind restores. */
export type Scope = "files" | "conversation" | "both";

/** A file that the model has seen. */
export interface SeenFile {
  /** Hash of its content. */
  hash: Hash;
  /** Relative to the root. */
  path: string;
}

/** A call as the model wrote it. */
export interface SentCall {
  /** The arguments, as the exact text. */
  args: string;
  /** Whether the arguments are plain text instead of JSON. */
  freeform?: boolean;
  /** The name that it used. */
  tool: string;
}

/** What was known of a server's tool when a call to it was judged. The call runs only while all of this is still true. */
export interface ServerTool {
  /** It can destroy something, says its server. */
  can_destroy?: boolean;
  /** Whether the call may change files of the workspace: its server may change some at any time. */
  class: Class;
  /** Hash of its description, its schema and its hints. */
  definition_hash: Hash;
  /** The server is one of the project's, not one of the person's. */
  from_project?: boolean;
  /** The place of the call in its answer. */
  index: number;
  /** `server/tool`. */
  name: string;
  /** The server can reach other machines. */
  reaches_network?: boolean;
  /** It only reads, says a server whose hints count. */
  reads_only?: boolean;
  /** What to do with an unfinished call after a crash. */
  recovery: Recovery;
  /** Hash of the server's settings. */
  settings_hash: Hash;
}

/** The id of a session. */
export type SessionId = string;

/** The new text of an old result. */
export interface Shortened {
  /** The call. */
  call: CallId;
  /** What the model is sent from now on. */
  shown: string;
}

/** Something that a preamble is made of: an instruction file, a prompt, the tools, the program. */
export interface Source {
  /** Hash of its text. */
  hash: Hash;
  /** Its name. */
  name: string;
}

/** A range of events, both ends included. */
export interface Span {
  /** First. */
  from: number;
  /** Last. */
  to: number;
}

/** A process started a call. */
export interface Started {
  /** Which call. */
  call: CallId;
  /** The process. */
  owner: Owner;
  /** What happens to the call if that process dies. */
  recovery: Recovery;
}

/** One model request, numbered from 1 throughout the session. */
export type Step = number;

/** The request failed. */
export interface StepFailed {
  /** Every attempt. */
  attempts: (Attempt)[];
  /** The error message, with what to do. */
  error: string;
  /** The kind of failure. */
  failure: Failure;
  /** The answer started but was not completed, so its usage is unknown. */
  incomplete?: boolean;
  /** What it may have used in addition, in that case. */
  lost?: Reserved;
  /** How the answer ended, if it came and is not usable. */
  no_answer?: NoAnswer | null;
  /** What had arrived: only text, never a call. */
  partial?: string;
  /** When a retry makes sense, if at all. */
  retry_at?: At | null;
  /** The step. */
  step: Step;
  /** What it used. */
  usage: Usage;
}

/** How a session works through the calls of an answer. */
export interface StepRules {
  /** The checks run after every answer, and they decide when the work is finished, not the model. */
  check_each_step: boolean;
  /** After a call that failed, the calls behind it are not run. */
  drop_after_failure: boolean;
  /** Calls run one after the other. Otherwise calls that only read run side by side. */
  sequential: boolean;
}

/** A request to the model is fixed: it depends only on the preamble and the events up to `upto`. */
export interface StepStarted {
  /** The preamble it uses. */
  preamble: Hash;
  /** The part of the budget that is reserved for it. */
  reserved: Reserved;
  /** The number of the step. */
  step: Step;
  /** The last event that the request includes. */
  upto: number;
}

/** Why the model stopped. */
export type Stop = "end" | "calls" | "length" | "filter" | {
  other: string;
};

/** How strongly the conversation is compacted. */
export type Strength = "shorten" | "summarise";

/** The time for a retry has come. */
export interface TimerFired {
  /** The time that the retry waited for. */
  at: At;
}

/** The session was given a title. */
export interface Titled {
  /** The title. */
  title: string;
}

/** What the core must know about a tool. It is recorded with the preamble, so that old calls keep their meaning. */
export interface Tool {
  /** Whether it reads, edits or runs a command. */
  class: Class;
  /** What it starts keeps running after the call. */
  leaves_process?: boolean;
  /** The name the model calls it by. */
  name: string;
  /** It only waits for such a process: the same result twice does not mean a lack of progress. */
  polls?: boolean;
  /** What to do with a call after a crash. */
  recovery: Recovery;
  /** What the tool means to the session, and whether the session itself answers it. */
  role: Role;
}

/** Names a state of the workspace's files in the checkpoint store. */
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
  /** Of the tokens sent, those that the server wrote to its cache and charges for. */
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

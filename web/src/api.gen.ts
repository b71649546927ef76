// Made by `cargo xtask generate` from docs/reference/openapi.json. Do not edit.

import type * as proto from './proto.gen';
type ConfigPatch = proto.ConfigPatch;
type Effort = proto.Effort;
type Hash = proto.Hash;
type InputId = proto.InputId;
type Isolation = proto.Isolation;
type Mode = proto.Mode;
type Proof = proto.Proof;
type QuestionId = proto.QuestionId;
type QuestionKind = proto.QuestionKind;
type Record = proto.Record;
type Refused = proto.Refused;
type RewindTo = proto.RewindTo;
type Rule = proto.Rule;
type Scope = proto.Scope;
type SessionId = proto.SessionId;

/** An accepted command; it is durable. */
export interface Accepted {
  id: InputId;
  /** The last event that it caused. */
  seq: number;
}

/** What reading a session's events shows. */
export interface Activity {
  /** Whether files are checkpointed, so that changes can be undone. */
  checkpoints: boolean;
  /** How commands are confined. */
  isolation: Isolation;
  /** Millionths of a US dollar; null if a price is unknown. */
  micros?: number | null;
  /** `provider/model` in use. */
  model: string;
  /** Whether the work was verified. */
  proof: Proof;
  /** Questions waiting for the user, oldest first. */
  questions: (OpenQuestion)[];
  /** The running call, if any. */
  running?: AskedCall | null;
  /** Steps since the last prompt, and the limit. */
  step: number;
  steps: number;
  /** A model request is in progress. */
  thinking: boolean;
  /** Input and output tokens. */
  tokens: number;
}

/** The response, in every case. */
export interface AgentAnswer {
  /** The tool's output, or the model's text if it called no tool. */
  data?: string | null;
  /** The error, if it failed. */
  error?: string | null;
  /** `Tool execution result` or `AgentService error`. */
  message: string;
  /** Whether it succeeded. */
  success: boolean;
}

/** A request to the stateless service. */
export interface AgentRequest {
  /** Earlier requests and results: the service itself remembers nothing. */
  contextHistory?: (HistoryEntry)[] | null;
  /** The task. */
  prompt: string;
  /** Accepted and ignored. */
  toolType?: unknown;
}

/** Any object. */
export type Any = { [key: string]: never };

/** A call that the user is asked about, or that is running. */
export interface AskedCall {
  arguments: string;
  /** Whether it is a check of the finished work, made by Dunnock itself. */
  harness: boolean;
  id: string;
  tool: string;
}

/** How a file differs between two steps. */
export interface Change {
  /** A unified diff, or one line if there is none. */
  diff: string;
  /** One of `added`, `changed`, `deleted`, `mode` ... */
  how: string;
  /** Path in the folder. */
  path: string;
}

/** What a session changed between two steps. */
export interface Changes {
  /** One entry per file. */
  changes: (Change)[];
  /** The first step. */
  from: number;
  /** The last step. */
  to: number;
}

/** The steps that a session can be rewound to. */
export interface Checkpoints {
  checkpoints: (Point)[];
}

/** A code for another browser. */
export interface Code {
  /** Logs in one browser, once, within 30 seconds. */
  code: string;
}

/** A refused command, with the current state. */
export interface Conflict {
  error: string;
  /** Why it was refused. */
  reason?: Refused | null;
  /** The session's current state, without its events. */
  session?: View | null;
}

/** A session that was created. */
export interface CreatedSession {
  id: SessionId;
  /** Number of events so far. */
  seq: number;
  workspace: string;
}

/** A user-defined command, from a file. */
export interface CustomCommand {
  /** What it does. */
  description: string;
  /** The name without the slash. */
  name: string;
  /** The prompt that is sent; `$ARGS` stands for the text after the command. */
  text: string;
}

/** The body of an error response. */
export interface ErrorBody {
  /** What went wrong, and what to do next. */
  error: string;
}

/** Files in a session's folder. */
export interface Files {
  /** Best match first, at most 200. */
  files: (string)[];
  /** Whether there are more. */
  more: boolean;
}

/** Where to fork. */
export interface Fork {
  /** The last event that the new session has; all of them by default. */
  at?: number | null;
}

/** A forked session. */
export interface ForkedSession {
  id: SessionId;
}

/** An earlier request to the service. */
export interface HistoryEntry {
  /** The prompt. */
  prompt?: string | null;
  /** The result, in any form. */
  result?: unknown;
  /** When it was made, in any format. */
  timestamp?: unknown;
}

/** An image for a prompt. */
export interface ImageUpload {
  /** A PNG, JPEG, GIF or WebP image, in base64. */
  data: string;
}

/** A provider whose models to list. */
export interface ListProviderModels {
  /** Its key, if it has none yet. */
  key?: string | null;
  /** The provider's name. */
  provider: string;
}

/** Login with a code or a password. */
export type Login = {
  code: string;
} | {
  password: string;
};

/** An MCP server. */
export interface McpServerRow {
  /** What it is granted. */
  access: string;
  /** Its name. */
  name: string;
  /** The file of the project that describes it; absent if it is the person's own. */
  project_file?: string | null;
  /** Its state in each session that is driven now. */
  sessions: (McpServerState)[];
  /** Its command or its address. */
  target: string;
  /** How many tools it has; absent if that is not known yet. */
  tools?: number | null;
}

/** How an MCP server is in a session. */
export interface McpServerState {
  /** The session. */
  session: string;
  /** Its state, with the last error. */
  state: string;
}

/** The MCP servers of a folder. */
export interface McpServers {
  servers: (McpServerRow)[];
}

/** Returned to an authenticated caller. */
export interface Me {
  /** The version of the link protocol on live channels. */
  link: number;
  /** The server's version. */
  version: string;
}

/** Whether the model is used from now on. */
export interface ModelInUse {
  /** Why it is not used. */
  error?: SetUpError | null;
  /** As `provider/model`; absent if it did not answer, and nothing was saved. */
  model?: string | null;
}

/** Models that can be used. */
export interface Models {
  /** Each as `provider/model`. */
  models: (string)[];
}

/** A session to create. */
export interface NewSession {
  /** The first prompt. */
  prompt?: string | null;
  /** Settings that differ from the configured ones. */
  set?: ConfigPatch;
  /** The folder to work in; by default the one in which the server was started. */
  workspace?: string | null;
}

/** An empty object. */
export type Nothing = { [key: string]: never };

/** A question, with everything the user should see before answering it. */
export interface OpenQuestion {
  /** What a yes grants beyond the sandbox. */
  access: (string)[];
  /** The call it is about, with the arguments as they would run. */
  call?: AskedCall | null;
  /** The hash that an answer must name. */
  hash: Hash;
  /** The heading, by kind of request. */
  heading: string;
  id: QuestionId;
  /** How the call is isolated. */
  isolation?: string | null;
  /** What the question is about, as data. */
  kind: QuestionKind;
  /** The label for no. */
  no: string;
  /** What would happen: programs that run, files that are lost. */
  preview: (string)[];
  /** Why approval is needed. */
  reasons: (string)[];
  /** The rule that "always" would create. */
  rule?: string | null;
  /** When that rule would apply. */
  rule_note?: string | null;
  /** The question itself, unless it is about a call: our own words, or the model's. */
  text?: string | null;
  /** What the person may grant instead, once. */
  wider?: string | null;
  /** The label for yes. */
  yes: string;
}

/** The state of all sessions. */
export interface Overview {
  /** Most recently updated first. */
  sessions: (OverviewRow)[];
  today: Today;
}

/** A session in the overview. */
export interface OverviewRow {
  /** RFC 3339, UTC. */
  created: string;
  /** Where the search words were found. */
  excerpt?: string | null;
  /** Whether this server is driving the session right now. */
  here: boolean;
  id: SessionId;
  /** Details; absent until the session has been read. */
  more?: Activity | null;
  /** Number of events so far. */
  seq: number;
  /** The state to display: like `state`, but `paused` if it has work to do and no process drives it. */
  shown_status: string;
  /** `working`, `waiting`, `done`, `failed`, `stopped` or `limit`. */
  state: string;
  /** A given title, or the first line of the first prompt. */
  title: string;
  /** RFC 3339, UTC. */
  updated: string;
  /** The last event that the user caused: what a command may expect. */
  version: number;
  workspace: string;
}

/** A step that a session can be rewound to. */
export interface Point {
  /** Number of files that rewinding would change, if that was determined. */
  files?: number | null;
  /** Its last event, which `rewind` refers to. */
  seq: number;
  /** Files that would be left alone, because others changed them. */
  skipped: (string)[];
  /** The step's number. */
  step: number;
  /** What it did. */
  title: string;
}

/** The state of a provider's key. */
export type ProviderKey = "missing" | "saved" | "variable" | "not_needed";

/** The models of a provider. */
export interface ProviderModels {
  /** Why they cannot be listed. */
  error?: SetUpError | null;
  /** Without the provider, with the one to suggest first; empty if they cannot be listed. */
  models: (string)[];
}

/** A provider that a model can be set up with. */
export interface ProviderRow {
  /** What it is. */
  about: string;
  /** Where its key is sent. */
  address: string;
  /** The state of its key. */
  key: ProviderKey;
  /** As in `provider/model`. */
  name: string;
  /** What to know before a key is typed. */
  warning?: string | null;
}

/** The providers to choose from. */
export interface Providers {
  /** Whether a key may be sent over this connection. */
  accepts_keys: boolean;
  providers: (ProviderRow)[];
}

/** A session in a list. */
export interface Row {
  /** RFC 3339, UTC. */
  created: string;
  /** Where the search words were found. */
  excerpt?: string | null;
  id: SessionId;
  /** Number of events so far. */
  seq: number;
  /** The state to display: like `state`, but `paused` if it has work to do and no process drives it. */
  shown_status: string;
  /** `working`, `waiting`, `done`, `failed`, `stopped` or `limit`. */
  state: string;
  /** A given title, or the first line of the first prompt. */
  title: string;
  /** RFC 3339, UTC. */
  updated: string;
  /** The last event that the user caused: what a command may expect. */
  version: number;
  workspace: string;
}

/** Sessions, newest first. */
export interface Rows {
  sessions: (Row)[];
}

/** A saved rule. */
export interface RuleRow {
  /** Whether it allows or denies. */
  allow: boolean;
  /** Where it applies, for people: "in all projects", "in ~/webshop". */
  place: string;
  /** The only folder in which it applies, with the folders in it; absent if it applies in all. */
  project?: string | null;
  /** The rule itself. */
  rule: Rule;
  /** A description. */
  words: string;
}

/** The saved rules. */
export interface Rules {
  rules: (RuleRow)[];
}

/** The defaults for a new session, and other folders to choose from. */
export interface SessionDefaults {
  /** Its git branch, if it is a repository. */
  branch?: string | null;
  /** The user's own commands. */
  commands: (CustomCommand)[];
  /** How hard the model is asked to think. */
  effort: Effort;
  /** The folder, shortened for display. */
  folder: string;
  /** Folders of earlier sessions, newest first. */
  folders: (string)[];
  /** How commands are confined here. */
  isolation: Isolation;
  /** What to do if there is no model. */
  missing: (string)[];
  /** The approval mode. */
  mode: Mode;
  /** The model that would be used, if any. */
  model?: string | null;
  /** Notes for the user about the folder. */
  notes: (string)[];
  /** The server's version. */
  version: string;
  /** The folder's full path. */
  workspace: string;
}

/** A rule to add or remove. */
export interface SetRule {
  /** True adds the rule, false removes it. */
  active: boolean;
  /** Whether the rule allows or denies. Only rules that allow can be added here. */
  allow: boolean;
  /** The only folder in which it applies, with the folders in it; if left out, it applies in all. */
  project?: string | null;
  /** The rule itself. */
  rule: Rule;
}

/** Why a key or a model cannot be used. */
export interface SetUpError {
  /** What happened. */
  error: string;
  /** Whether another key may help. */
  needs_key: boolean;
}

/** A stored image. */
export interface StoredImage {
  /** The hash by which a prompt refers to it. */
  hash: Hash;
}

/** Usage on this day (UTC), over all sessions sent. */
export interface Today {
  /** The daily budget in millionths of a US dollar, if one is set. */
  budget?: number | null;
  /** Millionths of a US dollar, where the price is known. */
  micros: number;
  /** Input and output tokens. */
  tokens: number;
  /** Some usage has an unknown price. */
  unknown: boolean;
}

/** What undoing the last task, or the last undo, would do. */
export interface UndoPreview {
  /** What it would undo. */
  scope: Scope;
  /** A description, with the files that would change. */
  summary: (string)[];
  /** The target for the `rewind` command. */
  to: RewindTo;
}

/** The model to use from now on. */
export interface UseModel {
  /** Its key, if it has none yet. It is saved if the model answers. */
  key?: string | null;
  /** The model, without the provider. */
  model: string;
  /** The provider's name. */
  provider: string;
}

/** A session and some of its events. */
export interface View {
  /** RFC 3339, UTC. */
  created: string;
  /** The events after `from`, in order. */
  events: (Record)[];
  /** Where the search words were found. */
  excerpt?: string | null;
  id: SessionId;
  /** `provider/model` in use. */
  model: string;
  /** Whether there are more events. */
  more: boolean;
  /** Questions waiting for the user, oldest first. */
  questions: (OpenQuestion)[];
  /** Number of events so far. */
  seq: number;
  /** The state to display: like `state`, but `paused` if it has work to do and no process drives it. */
  shown_status: string;
  /** `working`, `waiting`, `done`, `failed`, `stopped` or `limit`. */
  state: string;
  /** A given title, or the first line of the first prompt. */
  title: string;
  /** RFC 3339, UTC. */
  updated: string;
  /** The last event that the user caused: what a command may expect. */
  version: number;
  workspace: string;
}

/** What the page sends from then on. */
export interface Welcome {
  /** The name of the header that every request of the page must have. */
  header: string;
  /** Its value. It is returned only here; the page keeps it where only its own origin can read it. */
  token: string;
}

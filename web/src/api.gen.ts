// Made by `cargo xtask generate` from docs/openapi.json. Do not edit.

import type * as proto from './proto.gen';
type ConfigPatch = proto.ConfigPatch;
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

/** A command that was taken; it is durable. */
export interface Accepted {
  id: InputId;
  /** The last event that it made. */
  seq: number;
}

/** What reading a session shows. */
export interface Activity {
  /** Whether files are kept, so that a change can be taken back. */
  checkpoints: boolean;
  /** How commands are confined. */
  isolation: Isolation;
  /** Millionths of a US dollar; nothing where the price is not known. */
  micros?: number | null;
  /** `provider/model` in use. */
  model: string;
  /** Whether the work was checked. */
  proof: Proof;
  /** What waits for a person, oldest first. */
  questions: (OpenQuestion)[];
  /** What runs, if something does. */
  running?: AskedCall | null;
  /** Steps since the last prompt, and how many there may be. */
  step: number;
  steps: number;
  /** The model is being asked. */
  thinking: boolean;
  /** Tokens in and out. */
  tokens: number;
}

/** What the service answers, always. */
export interface AgentAnswer {
  /** What the tool said, or the model, if it called none. */
  data?: string | null;
  /** What went wrong. */
  error?: string | null;
  /** `Tool execution result` or `AgentService error`. */
  message: string;
  /** Whether it was done. */
  success: boolean;
}

/** What is asked of the service. */
export interface AgentRequest {
  /** What was asked and answered before: the service itself remembers nothing. */
  contextHistory?: (HistoryEntry)[] | null;
  /** What to do. */
  prompt: string;
  /** Accepted and ignored. */
  toolType?: unknown;
}

/** Any object. */
export type Any = { [key: string]: never };

/** A call that waits for a word. */
export interface AskedCall {
  arguments: string;
  /** A check of the finished work, made by the harness. */
  harness: boolean;
  id: string;
  tool: string;
}

/** How a file differs between two steps. */
export interface Change {
  /** As a unified diff, or in a line where it has none. */
  diff: string;
  /** In a word: `added`, `changed`, `deleted`, `mode` ... */
  how: string;
  /** In the folder. */
  path: string;
}

/** What a session changed between two steps. */
export interface Changes {
  /** File by file. */
  changes: (Change)[];
  /** The first of them. */
  from: number;
  /** The last. */
  to: number;
}

/** Where a session can go back to. */
export interface Checkpoints {
  checkpoints: (Point)[];
}

/** A code for another browser. */
export interface Code {
  /** Opens the door once, within half a minute. */
  code: string;
}

/** A command that was not taken, with how things stand. */
export interface Conflict {
  error: string;
  /** Why not. */
  reason?: Refused | null;
  /** The session now, without its events. */
  session?: View | null;
}

/** A session that was made. */
export interface CreatedSession {
  id: SessionId;
  /** Events so far. */
  seq: number;
  workspace: string;
}

/** A command of the person's own, from a file. */
export interface CustomCommand {
  /** What it does. */
  description: string;
  /** Without the slash. */
  name: string;
  /** What is sent; `$ARGS` stands for what follows the command. */
  text: string;
}

/** What is said when something was not done. */
export interface ErrorBody {
  /** What, and what to do next. */
  error: string;
}

/** Files of a session's folder. */
export interface Files {
  /** Best first, 200 at most. */
  files: (string)[];
  /** Whether there are more. */
  more: boolean;
}

/** Where to branch off. */
export interface Fork {
  /** The last event that the new session has; all of them if not given. */
  at?: number | null;
}

/** A session that branched off. */
export interface ForkedSession {
  id: SessionId;
}

/** An earlier call of the service. */
export interface HistoryEntry {
  /** What was asked. */
  prompt?: string | null;
  /** What came of it, in any form. */
  result?: unknown;
  /** When, in any form. */
  timestamp?: unknown;
}

/** A picture for a prompt. */
export interface ImageUpload {
  /** The bytes of a PNG, JPEG, GIF or WebP picture, in base64. */
  data: string;
}

/** What opens the door for a browser: one of the two. */
export type Login = {
  code: string;
} | {
  password: string;
};

/** Whoever is let in. */
export interface Me {
  /** The version of the link that live channels speak. */
  link: number;
  /** This release. */
  version: string;
}

/** Models that can be used. */
export interface Models {
  /** Each as `provider/model`. */
  models: (string)[];
}

/** A new session. */
export interface NewSession {
  /** What to begin with. */
  prompt?: string | null;
  /** Settings that are not as configured. */
  set?: ConfigPatch;
  /** The folder to work in; the one that the server was started in, if not given. */
  workspace?: string | null;
}

/** Nothing has to be said. */
export type Nothing = { [key: string]: never };

/** A question, with all that a person should see before answering it. */
export interface OpenQuestion {
  /** What a yes grants beyond the sandbox. */
  access: (string)[];
  /** The call that it is about, with its arguments as they would run. */
  call?: AskedCall | null;
  /** What an answer names. */
  hash: Hash;
  /** What is asked, by the kind of request. */
  heading: string;
  id: QuestionId;
  /** How the call is isolated. */
  isolation?: string | null;
  /** What it is about, as data. */
  kind: QuestionKind;
  /** The label of a no. */
  no: string;
  /** What would be lost. */
  preview: (string)[];
  /** Why it is asked. */
  reasons: (string)[];
  /** The rule that "always" would create. */
  rule?: string | null;
  /** The question itself, where it is not a call: our own words, or the model's. */
  text?: string | null;
  /** The label of a yes. */
  yes: string;
}

/** How all sessions stand. */
export interface Overview {
  /** The newest first. */
  sessions: (OverviewRow)[];
  today: Today;
}

/** A session at a glance. */
export interface OverviewRow {
  /** RFC 3339, UTC. */
  created: string;
  /** Where the words of a search were found. */
  excerpt?: string | null;
  /** This server drives it right now. */
  here: boolean;
  id: SessionId;
  /** More of it; not there until it was read. */
  more?: Activity | null;
  /** Events so far. */
  seq: number;
  /** `working`, `waiting`, `done`, `failed`, `stopped` or `limit`. */
  state: string;
  /** Given, or the first line of the first prompt. */
  title: string;
  /** RFC 3339, UTC. */
  updated: string;
  /** The last event that a person caused: what a command may expect. */
  version: number;
  workspace: string;
}

/** A step that can be gone back to. */
export interface Point {
  /** Files that going back there would change, where that was looked at. */
  files?: number | null;
  /** Its last event: what a rewind names. */
  seq: number;
  /** Files that would be left alone, since others changed them. */
  skipped: (string)[];
  /** The step. */
  step: number;
  /** What it did. */
  title: string;
}

/** A session in a list. */
export interface Row {
  /** RFC 3339, UTC. */
  created: string;
  /** Where the words of a search were found. */
  excerpt?: string | null;
  id: SessionId;
  /** Events so far. */
  seq: number;
  /** `working`, `waiting`, `done`, `failed`, `stopped` or `limit`. */
  state: string;
  /** Given, or the first line of the first prompt. */
  title: string;
  /** RFC 3339, UTC. */
  updated: string;
  /** The last event that a person caused: what a command may expect. */
  version: number;
  workspace: string;
}

/** Sessions, newest first. */
export interface Rows {
  sessions: (Row)[];
}

/** One of them. */
export interface RuleRow {
  /** It lets something run; otherwise it forbids it. */
  allow: boolean;
  rule: Rule;
  /** The same in words. */
  words: string;
}

/** Rules that hold in every session. */
export interface Rules {
  rules: (RuleRow)[];
}

/** The same, and where else one could work. */
export interface SessionDefaults {
  /** Its branch, if it is a repository. */
  branch?: string | null;
  /** The person's own commands. */
  commands: (CustomCommand)[];
  /** The same, as people write it. */
  folder: string;
  /** Folders of earlier sessions, the newest first. */
  folders: (string)[];
  /** How commands are confined here. */
  isolation: Isolation;
  /** What to do, where there is no model. */
  missing: (string)[];
  /** Who would be asked. */
  mode: Mode;
  /** The model that would be used, if one is known. */
  model?: string | null;
  /** What the person should know of the folder. */
  notes: (string)[];
  /** This release. */
  version: string;
  /** The folder, whole. */
  workspace: string;
}

/** A rule to make or to take back. */
export interface SetRule {
  /** Whether it holds from now on. */
  active: boolean;
  /** Which it is: one that lets something run, or one that forbids it. Only the former can be made here. */
  allow: boolean;
  rule: Rule;
}

/** A picture that is kept. */
export interface StoredImage {
  /** What a prompt names it by. */
  hash: Hash;
}

/** What was used on this day (UTC), by all sessions that are told of. */
export interface Today {
  /** The budget of a day, in millionths of a US dollar, where one is set. */
  budget?: number | null;
  /** Millionths of a US dollar, where the price is known. */
  micros: number;
  /** Tokens in and out. */
  tokens: number;
  /** Some of it was used at a price that is not known. */
  unknown: boolean;
}

/** What taking back the last task would do, or the last undo. */
export interface UndoPreview {
  /** What it would take back. */
  scope: Scope;
  /** In words, with the files that would change. */
  summary: (string)[];
  /** Where the command `rewind` would go. */
  to: RewindTo;
}

/** A session. */
export interface View {
  /** RFC 3339, UTC. */
  created: string;
  /** The events after the one that was named, in order. */
  events: (Record)[];
  /** Where the words of a search were found. */
  excerpt?: string | null;
  id: SessionId;
  /** `provider/model` in use. */
  model: string;
  /** Whether there are more of them. */
  more: boolean;
  /** What waits for a person, oldest first. */
  questions: (OpenQuestion)[];
  /** Events so far. */
  seq: number;
  /** `working`, `waiting`, `done`, `failed`, `stopped` or `limit`. */
  state: string;
  /** Given, or the first line of the first prompt. */
  title: string;
  /** RFC 3339, UTC. */
  updated: string;
  /** The last event that a person caused: what a command may expect. */
  version: number;
  workspace: string;
}

/** What a page sends from then on. */
export interface Welcome {
  /** The name of the header that every request of the page carries. */
  header: string;
  /** Its value. It is given here and nowhere else; a page keeps it where only its own origin can read. */
  token: string;
}

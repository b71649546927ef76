/** Slash commands: the terminal app's that make sense in a browser, and the user's own. */

import type { Effort, Mode } from '../proto.gen';
import { branch, configure, copyText, order } from './actions';
import { get, go, set, tell } from './store';

export interface Slash {
  name: string;
  args: string;
  about: string;
}

export interface Own {
  name: string;
  description: string;
  text: string;
}

export const MODES: Mode[] = ['read', 'ask', 'edits', 'auto', 'all'];

export const EFFORTS: Effort[] = ['none', 'low', 'medium', 'high', 'xhigh', 'max'];

type Does = Slash & { session: boolean; run: (rest: string, id: string) => void };

const TABLE: Does[] = [
  {
    name: 'new',
    args: '',
    about: 'start a new session; this one is saved',
    session: false,
    run: () => go({ at: 'new' }),
  },
  { name: 'clear', args: '', about: 'same as /new', session: false, run: () => go({ at: 'new' }) },
  {
    name: 'sessions',
    args: '',
    about: 'search all sessions',
    session: false,
    run: () => set({ dialog: { kind: 'search' } }),
  },
  {
    name: 'overview',
    args: '',
    about: 'overview of all sessions',
    session: false,
    run: () => go({ at: 'all' }),
  },
  {
    name: 'diff',
    args: '',
    about: 'show what this session changed',
    session: true,
    run: () => set({ dialog: { kind: 'diff' } }),
  },
  {
    name: 'undo',
    args: '',
    about: 'undo the last task, or the last undo',
    session: true,
    run: () => set({ dialog: { kind: 'undo' } }),
  },
  {
    name: 'rewind',
    args: '',
    about: 'go back to a step: files, conversation, or both',
    session: true,
    run: () => set({ dialog: { kind: 'rewind', seq: null } }),
  },
  {
    name: 'fork',
    args: '',
    about: 'fork: a new session with this conversation',
    session: true,
    run: (_, id) => void branch(id),
  },
  {
    name: 'compact',
    args: '',
    about: 'compact the conversation',
    session: true,
    run: (_, id) => void order(id, 'compact'),
  },
  {
    name: 'title',
    args: 'WORDS',
    about: 'rename this session',
    session: true,
    run: (rest, id) => void order(id, { title: { title: rest } }),
  },
  {
    name: 'model',
    args: 'P/M',
    about: 'switch to another model',
    session: true,
    run: (rest, id) =>
      void (rest
        ? configure(id, { model: rest })
        : tell('Name a model: /model provider/model, or choose one below the input.')),
  },
  {
    name: 'effort',
    args: 'EFFORT',
    about: `how hard the model thinks: ${EFFORTS.join(', ')}`,
    session: true,
    run: (rest, id) =>
      void (EFFORTS.includes(rest as Effort)
        ? configure(id, { effort: rest as Effort })
        : tell(`Name an effort: ${EFFORTS.join(', ')}`, 'bad')),
  },
  {
    name: 'approvals',
    args: 'MODE',
    about: 'approval mode: read, ask, edits, auto, all',
    session: true,
    run: (rest, id) =>
      void (MODES.includes(rest as Mode)
        ? configure(id, { mode: rest as Mode })
        : tell(`Name a mode: ${MODES.join(', ')}`, 'bad')),
  },
  {
    name: 'mcp',
    args: '',
    about: 'MCP servers, their access and state',
    session: false,
    run: () => set({ dialog: { kind: 'servers' } }),
  },
  {
    name: 'rules',
    args: '',
    about: 'your saved approval rules',
    session: false,
    run: () => set({ dialog: { kind: 'rules' } }),
  },
  {
    name: 'cost',
    args: '',
    about: 'tokens and cost',
    session: true,
    run: () => set({ dialog: { kind: 'cost' } }),
  },
  {
    name: 'copy',
    args: '',
    about: 'copy the last answer',
    session: true,
    run: () => void copyText(get().opened?.session?.answer ?? ''),
  },
  {
    name: 'keys',
    args: '',
    about: 'all keys',
    session: false,
    run: () => set({ dialog: { kind: 'keys' } }),
  },
  {
    name: 'help',
    args: '',
    about: 'keys and commands',
    session: false,
    run: () => set({ dialog: { kind: 'keys' } }),
  },
];

export const commands = (inSession: boolean, own: Own[]): Slash[] => [
  ...TABLE.filter((c) => inSession || !c.session),
  ...own.map(({ name, description }) => ({ name, about: description, args: ' ' })),
];

/**
 * Runs a command. Returns true if it ran, the prompt to send if it is one of the user's own, or
 * null if there is no such command.
 */
export function run(text: string, session: string | null, own: Own[]): true | string | null {
  const [first = '', ...rest] = text.slice(1).split(' ');
  const more = rest.join(' ').trim();
  const mine = own.find((o) => o.name === first);
  if (mine) return mine.text.replaceAll('$ARGS', () => more);
  const found = TABLE.find((c) => c.name === first && (session !== null || !c.session));
  if (!found) return null;
  found.run(more, session ?? '');
  return true;
}

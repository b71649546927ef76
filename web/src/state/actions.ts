/** The user's actions, whether started by a key or a button. */

import type { OpenQuestion, Conflict } from '../api.gen';
import type { Answer, Command, Config, Rule } from '../proto.gen';
import * as api from '../net/api';
import { connect } from './open';
import { get, go, set, tell } from './store';
import { shape } from './words';

const words = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** The message for a command that was refused or failed. */
function refusal(error: unknown): string {
  if (!(error instanceof api.Failed) || error.status !== 409) return words(error);
  const conflict = error.body as Conflict | undefined;
  if (conflict?.reason && typeof conflict.reason === 'object' && 'stale' in conflict.reason) {
    return 'This session was changed elsewhere in the meantime. Nothing was lost: check it and try again.';
  }
  if (conflict?.reason === 'no_question' || conflict?.reason === 'changed')
    return 'That question was already answered elsewhere, or has changed.';
  return error.message;
}

/** Sends a command to a session and shows a message if it fails. */
export async function order(id: string, command: Command, expect?: number): Promise<boolean> {
  try {
    if (get().opened?.id === id && command !== 'interrupt') connect();
    await api.command(id, command, expect);
    return true;
  } catch (error) {
    tell(refusal(error), 'bad');
    return false;
  }
}

export interface Picture {
  name: string;
  /** `data:image/…;base64,…` */
  url: string;
}

const bytes = (picture: Picture) => picture.url.slice(picture.url.indexOf(',') + 1);

/** Sends a prompt to the open session. The caller keeps the text until this returns true. */
export async function prompt(text: string, pictures: Picture[]): Promise<boolean> {
  const session = get().opened?.session;
  if (!session) {
    tell('The session is still loading; send it again in a moment.', 'bad');
    return false;
  }
  try {
    const images: string[] = [];
    for (const picture of pictures)
      images.push((await api.picture(session.id, bytes(picture))).hash);
    connect();
    // Expect the version on screen: if someone else was faster, the user looks at that first.
    await api.command(session.id, { prompt: { text, images } }, session.version);
    return true;
  } catch (error) {
    tell(refusal(error), 'bad');
    return false;
  }
}

/** Creates a session with its first prompt. */
export async function begin(
  text: string,
  pictures: Picture[],
  options: { workspace?: string; set: Partial<Config> },
): Promise<boolean> {
  try {
    const body = {
      set: options.set,
      ...(options.workspace ? { workspace: options.workspace } : {}),
    };
    if (pictures.length === 0) {
      const made = await api.make({ ...body, prompt: text });
      go({ at: 'session', id: made.id });
      return true;
    }
    // Images are stored in a session, so it has to exist first.
    const made = await api.make(body);
    const images: string[] = [];
    for (const picture of pictures) images.push((await api.picture(made.id, bytes(picture))).hash);
    await api.command(made.id, { prompt: { text, images } });
    go({ at: 'session', id: made.id });
    return true;
  } catch (error) {
    tell(words(error), 'bad');
    return false;
  }
}

/** Answers a question. The hash ties the answer to exactly what was shown. */
export async function reply(
  id: string,
  asks: Pick<OpenQuestion, 'id' | 'hash'>,
  answer: Answer,
  note?: string,
): Promise<boolean> {
  return order(id, {
    reply: { question: asks.id, hash: asks.hash, answer, ...(note ? { note } : {}) },
  });
}

/**
 * Answers “always” for a project, or for all if none is given. The rule is saved only after the
 * answer was accepted.
 */
export async function always(
  id: string,
  asks: Pick<OpenQuestion, 'id' | 'hash'>,
  rule: Rule,
  project: string | undefined,
): Promise<boolean> {
  if (!(await reply(id, asks, { always: { rule } }))) return false;
  try {
    await api.setRule(rule, true, true, project);
    const place = project === undefined ? 'in all projects' : `in ${project}`;
    tell(`Always allowed ${place}: ${shape(rule)}. To revoke it: /rules`);
  } catch (error) {
    tell(`The rule applies to this session only: ${words(error)}`, 'bad');
  }
  return true;
}

export async function stop() {
  const session = get().opened?.session;
  if (session?.working || session?.compacting) await order(session.id, 'interrupt');
}

export async function configure(id: string, change: Partial<Config>) {
  await order(id, { configure: { set: change as Config } });
}

export async function branch(id: string, seq?: number) {
  try {
    const made = await api.fork(id, seq);
    set({ dialog: null });
    go({ at: 'session', id: made.id });
    tell('Forked: this is a new session with the same conversation.');
  } catch (error) {
    tell(words(error), 'bad');
  }
}

export async function copyText(text: string) {
  try {
    await navigator.clipboard.writeText(text);
    tell('Copied.');
  } catch {
    tell('The browser does not allow this page to copy.', 'bad');
  }
}

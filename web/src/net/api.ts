/**
 * Requests to the server of this page. The browser adds the cookie; the token goes into a header.
 */

import type * as api from '../api.gen';
import type { Command, Config } from '../proto.gen';

/**
 * Storage key of the token. Only pages of this origin, port included, can read it; tabs share it.
 */
const KEPT = 'dunnock.token';

export const token = {
  get: () => localStorage.getItem(KEPT) ?? '',
  set: (value: string) => localStorage.setItem(KEPT, value),
  /** Calls `then` when another tab signs in, since this one can use the same token. */
  watch(then: () => void): () => void {
    const heard = (e: StorageEvent) => {
      if (e.key === KEPT && e.newValue) then();
    };
    window.addEventListener('storage', heard);
    return () => window.removeEventListener('storage', heard);
  },
};

/** A failed request. The message says what to do; status 0 means that the server did not answer. */
export class Failed extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly body?: unknown,
  ) {
    super(message);
  }
}

let refused: () => void = () => {};
/** Sets what to do when the server no longer accepts this page's credentials. */
export const onRefused = (then: () => void) => {
  refused = then;
};

async function request<T>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      headers: {
        'x-dunnock-token': token.get(),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
  } catch {
    throw new Failed(0, 'the server is not responding');
  }
  if (answer.ok)
    return (
      answer.headers.get('content-type')?.includes('json') ? answer.json() : answer.blob()
    ) as Promise<T>;
  const said = (await answer.json().catch(() => ({}))) as { error?: string };
  if ((answer.status === 401 || answer.status === 403) && path !== '/api/login') refused();
  throw new Failed(
    answer.status,
    said.error ?? `the server answered with status ${answer.status}`,
    said,
  );
}

const q = (params: Record<string, string | number | undefined | null>) => {
  const set = Object.entries(params).filter(([, v]) => v !== undefined && v !== null && v !== '');
  return set.length
    ? `?${set.map(([k, v]) => `${k}=${encodeURIComponent(String(v))}`).join('&')}`
    : '';
};
const at = (id: string, rest = '') => `/api/sessions/${encodeURIComponent(id)}${rest}`;

export async function login(what: api.Login): Promise<void> {
  const welcome = await request<api.Welcome>('POST', '/api/login', what);
  token.set(welcome.token);
}

export const me = () => request<api.Me>('GET', '/api/me');
export const start = (workspace?: string) =>
  request<api.SessionDefaults>('GET', `/api/defaults${q({ workspace })}`);
export const models = async () => (await request<api.Models>('GET', '/api/models')).models;
export const providers = () => request<api.Providers>('GET', '/api/providers');
export const providerModels = (body: api.ListProviderModels, signal: AbortSignal) =>
  request<api.ProviderModels>('POST', '/api/providers/models', body, signal);
/** Tries a model and, if it answers, saves it and the key. Aborted before, it saves nothing. */
export const chooseModel = (body: api.UseModel, signal: AbortSignal) =>
  request<api.ModelInUse>('POST', '/api/providers/use', body, signal);
export const search = async (words: string) =>
  (await request<api.Rows>('GET', `/api/sessions${q({ search: words, limit: 50 })}`)).sessions;
export const make = (body: { workspace?: string; prompt?: string; set?: Partial<Config> }) =>
  request<api.CreatedSession>('POST', '/api/sessions', body);
export const read = (id: string, from: number, limit?: number) =>
  request<api.View>('GET', at(id, q({ from, limit })));
export const files = (id: string | null, match: string, workspace?: string) =>
  request<api.Files>(
    'GET',
    id ? at(id, `/files${q({ match })}`) : `/api/files${q({ match, workspace })}`,
  );
export const points = async (id: string) =>
  (await request<api.Checkpoints>('GET', at(id, '/checkpoints'))).checkpoints;
export const diff = (id: string, steps?: string) =>
  request<api.Changes>('GET', at(id, `/diff${q({ steps })}`));
export const undoWay = (id: string) => request<api.UndoPreview>('GET', at(id, '/undo'));
export const fork = (id: string, seq?: number) =>
  request<api.ForkedSession>('POST', at(id, '/fork'), seq === undefined ? {} : { at: seq });
export const blob = (id: string, hash: string) => request<Blob>('GET', at(id, `/blobs/${hash}`));
export const picture = (id: string, data: string) =>
  request<api.StoredImage>('POST', at(id, '/images'), { data });
export const servers = async (workspace?: string) =>
  (await request<api.McpServers>('GET', `/api/mcp/servers${q({ workspace })}`)).servers;
export const rules = async () => (await request<api.Rules>('GET', '/api/rules')).rules;
export const setRule = (
  rule: api.RuleRow['rule'],
  allow: boolean,
  active: boolean,
  project: string | undefined,
) => request<api.Rules>('POST', '/api/rules', { rule, allow, active, project });

const mint = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) =>
    b.toString(16).padStart(2, '0'),
  ).join('');

/**
 * Sends a command that takes effect once: if the connection breaks, it is sent again with the same
 * id and gets the first answer. A command that conflicts with the session's state throws `Failed`
 * with status 409 and the reason.
 */
export async function command(
  id: string,
  what: Command,
  expect?: number,
  patience = 20_000,
): Promise<api.Accepted> {
  const order = { id: mint(), command: what, ...(expect === undefined ? {} : { expect }) };
  const until = Date.now() + patience;
  for (let pause = 250; ; pause = Math.min(2 * pause, 2000)) {
    try {
      return await request<api.Accepted>('POST', at(id, '/commands'), order);
    } catch (error) {
      const again = error instanceof Failed && (error.status === 0 || error.status === 503);
      if (!again || Date.now() + pause > until) throw error;
      await new Promise((done) => setTimeout(done, pause));
    }
  }
}

/** A model that says what a test wants, over the chat wire: streamed, at the pace that the test sets, held back until it says so. */

import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Reply {
  reasoning?: string;
  text?: string;
  calls?: { tool: string; args: unknown }[];
  /** Characters of one piece, and milliseconds between pieces. */
  piece?: number;
  pace?: number;
  /** It stops here until the promise is kept. */
  hold?: Promise<void>;
}

export const say = (text: string): Reply => ({ text });
export const call = (tool: string, args: unknown, text = ''): Reply => ({
  text,
  calls: [{ tool, args }],
});
export const shell = (command: string, text = ''): Reply => call('shell', { command }, text);

const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));

export class Model {
  private server: Server;
  private replies: Reply[] = [];
  readonly requests: { messages: { role: string; content: unknown }[] }[] = [];

  private constructor() {
    this.server = createServer((request, answer) => {
      let body = '';
      request.on('data', (part) => (body += part));
      request.on('end', () => void this.answer(request.url ?? '', body, answer));
    });
  }

  static async start(...replies: Reply[]): Promise<Model> {
    const model = new Model();
    model.replies = replies;
    await new Promise<void>((done) => model.server.listen(0, '127.0.0.1', done));
    return model;
  }

  get url() {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1`;
  }

  /** What it says next, after what it was to say. */
  next(...replies: Reply[]) {
    this.replies.push(...replies);
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  private async answer(path: string, body: string, out: ServerResponse) {
    if (path.endsWith('/models'))
      return void out
        .writeHead(200, { 'content-type': 'application/json' })
        .end('{"data":[{"id":"m-1"},{"id":"m-2"}]}');
    // Programs look for other things, too: what a server holds, how large its window is.
    if (!path.endsWith('/chat/completions')) return void out.writeHead(404).end();
    this.requests.push(JSON.parse(body));
    const reply = this.replies.shift() ?? say('There is nothing more to do.');
    out.writeHead(200, { 'content-type': 'text/event-stream' });
    const put = (delta: unknown, finish: string | null = null) =>
      out.write(
        `data: ${JSON.stringify({ id: 'x', model: 'm-1', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
      );
    const stream = async (key: string, text: string) => {
      const size = reply.piece ?? 24;
      for (let at = 0; at < text.length; at += size) {
        put({ [key]: text.slice(at, at + size) });
        if (reply.pace) await sleep(reply.pace);
      }
    };
    put({ role: 'assistant' });
    if (reply.reasoning) await stream('reasoning_content', reply.reasoning);
    if (reply.text) await stream('content', reply.text);
    if (reply.hold) await reply.hold;
    reply.calls?.forEach((one, index) =>
      put({
        tool_calls: [
          {
            index,
            id: `c${this.requests.length}-${index}`,
            type: 'function',
            function: { name: one.tool, arguments: JSON.stringify(one.args) },
          },
        ],
      }),
    );
    put({}, reply.calls ? 'tool_calls' : 'stop');
    out.write(
      `data: ${JSON.stringify({ id: 'x', model: 'm-1', choices: [], usage: { prompt_tokens: 1200, completion_tokens: 80, prompt_tokens_details: { cached_tokens: 800 } } })}\n\n`,
    );
    out.end('data: [DONE]\n\n');
  }
}

/** A promise, and how to keep it. */
export function gate(): { hold: Promise<void>; open: () => void } {
  let open = () => {};
  const hold = new Promise<void>((done) => (open = done));
  return { hold, open };
}

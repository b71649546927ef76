/** The real program, a real browser, a folder to work in: what every browser test begins with. */

import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { afterAll } from 'vitest';
import { Model, type Reply } from './model';

const ROOT = join(import.meta.dirname, '../..');
const BIN =
  process.env.DUNNOCK_BIN ??
  join(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target'), 'debug/dunnock');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const SHOTS = join(ROOT, 'web/shots');

/** Where pictures of the screens go: to be looked at. */
mkdirSync(SHOTS, { recursive: true });

export interface Options {
  /** Lines of the settings beside the model. */
  config?: string;
  files?: Record<string, string>;
}

/** One for all tests of a file; each test has contexts of its own. */
let browser: Browser | null = null;
afterAll(async () => {
  await browser?.close();
});

export class World {
  readonly home = mkdtempSync(join(tmpdir(), 'dunnock-web-'));
  readonly folder = join(this.home, 'webshop');
  private server: ChildProcess | null = null;
  private contexts: BrowserContext[] = [];
  url = '';
  private entry = '';
  private said = 0;
  private port = 0;
  /** What a browser reported against the page's policy, and errors of its scripts. */
  readonly complaints: string[] = [];
  model!: Model;

  static async start(replies: Reply[], options: Options = {}): Promise<World> {
    for (const need of [BIN, CHROMIUM])
      if (!existsSync(need)) throw new Error(`${need} is not there`);
    const world = new World();
    world.model = await Model.start(...replies);
    mkdirSync(world.folder, { recursive: true });
    for (const [path, text] of Object.entries(options.files ?? {})) {
      mkdirSync(join(world.folder, path, '..'), { recursive: true });
      writeFileSync(join(world.folder, path), text);
    }
    mkdirSync(join(world.home, 'config/dunnock'), { recursive: true });
    writeFileSync(
      join(world.home, 'config/dunnock/config.toml'),
      `model = "mock/m-1"\nprice = ["mock/m-1: 1.25 in, 0.125 cached, 10 out"]\n${options.config ?? ''}\n[providers.mock]\nwire = "chat"\nbase_url = "${world.model.url}"\n`,
    );
    await world.serve();
    browser ??= await chromium.launch({
      executablePath: CHROMIUM,
      args: ['--no-sandbox', '--disable-dev-shm-usage'],
    });
    return world;
  }

  get env(): NodeJS.ProcessEnv {
    const dir = (name: string) => join(this.home, name);
    return {
      PATH: process.env.PATH,
      HOME: this.home,
      TERM: 'xterm-256color',
      LANG: 'C.UTF-8',
      XDG_CONFIG_HOME: dir('config'),
      XDG_DATA_HOME: dir('data'),
      XDG_STATE_HOME: dir('state'),
      XDG_RUNTIME_DIR: dir('run'),
      XDG_CACHE_HOME: dir('cache'),
    };
  }

  /** Starts the program; the second time at the same port. */
  async serve() {
    mkdirSync(join(this.home, 'run'), { recursive: true, mode: 0o700 });
    const server = spawn(BIN, ['web', '--no-open', '--json', '--port', String(this.port)], {
      cwd: this.folder,
      env: this.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.server = server;
    let errors = '';
    server.stderr.on('data', (part) => (errors += part));
    const line = await new Promise<string>((done, fail) => {
      let text = '';
      server.stdout.on('data', (part) => {
        text += part;
        if (text.includes('\n')) done(text);
      });
      server.on('exit', (code) => fail(new Error(`the program ended (${code}): ${errors}`)));
    });
    const said = JSON.parse(line) as { url: string; open: string };
    this.url = said.url;
    this.entry = said.open;
    this.said = Date.now();
    this.port = Number(new URL(said.url).port);
  }

  /** Kills the server as hard as can be. */
  async kill() {
    const gone = new Promise((done) => this.server?.once('exit', done));
    this.server?.kill('SIGKILL');
    await gone;
  }

  get token() {
    return readFileSync(join(this.home, `run/dunnock/serve-${this.port}.token`), 'utf8');
  }

  async api<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json() as Promise<T>;
  }

  /** A new address with a code that counts once. */
  async address(): Promise<string> {
    const first = this.entry;
    this.entry = '';
    // It counts for half a minute.
    if (first && Date.now() - this.said < 20_000) return first;
    const { code } = await this.api<{ code: string }>('POST', '/api/code', {});
    return `${this.url}/#code=${code}`;
  }

  /** A browser of its own, with a page that came in. */
  async page(
    options: {
      width?: number;
      height?: number;
      dark?: boolean;
      path?: string;
      context?: BrowserContext;
    } = {},
  ): Promise<Page> {
    const { width = 1440, height = 900, dark = false } = options;
    const context =
      options.context ??
      (await browser!.newContext({
        viewport: { width, height },
        colorScheme: dark ? 'dark' : 'light',
        reducedMotion: 'reduce',
      }));
    this.contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    page.on('console', (message) => {
      if (
        message.type() === 'error' &&
        !/WebSocket|ERR_CONNECTION|Failed to load resource/.test(message.text())
      )
        this.complaints.push(message.text());
    });
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    await page.addInitScript(() => {
      const all: string[] = [];
      (window as unknown as { policy: string[] }).policy = all;
      document.addEventListener('securitypolicyviolation', (e) =>
        all.push(`${e.violatedDirective} ${e.blockedURI} ${e.sourceFile ?? ''}`),
      );
    });
    if (options.context) await page.goto(this.url + (options.path ?? '/'));
    else {
      await page.goto(await this.address());
      await page.locator('nav').waitFor({ state: 'attached' });
      if (options.path) await page.goto(this.url + options.path);
    }
    return page;
  }

  /** What went against the page's policy, and what its scripts stumbled over. */
  async wrong(page: Page): Promise<string[]> {
    const policy = await page.evaluate(() => (window as unknown as { policy: string[] }).policy);
    return [...policy, ...this.complaints];
  }

  /** The program with other words, to its end. */
  async run(...words: string[]): Promise<{ status: number | null; stdout: string }> {
    const child = spawn(BIN, words, {
      cwd: this.folder,
      env: this.env,
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 30_000,
    });
    let stdout = '';
    child.stdout.on('data', (part) => (stdout += part));
    const status = await new Promise<number | null>((done) => child.on('close', done));
    return { status, stdout };
  }

  get bin() {
    return BIN;
  }

  read(path: string) {
    return readFileSync(join(this.folder, path), 'utf8');
  }

  async stop() {
    for (const context of new Set(this.contexts)) {
      const closed = context.close().catch(() => {}); // one that is gone is closed
      if (!(await ends(closed))) {
        process.stderr.write('a browser context does not close; the next test starts anew\n');
        browser = null;
      }
    }
    if (this.server && this.server.exitCode === null && this.server.signalCode === null) {
      const gone = new Promise((done) => this.server?.once('exit', done));
      this.server.kill('SIGTERM');
      if (!(await ends(gone))) {
        const state = readFileSync(`/proc/${this.server.pid}/status`, 'utf8');
        this.server.kill('SIGKILL');
        throw new Error(`the server does not end on SIGTERM:\n${state}`);
      }
    }
    await this.model.stop();
    rmSync(this.home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/** Whether something comes to its end within a minute. */
async function ends(what: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((done) => (timer = setTimeout(() => done(false), 60_000)));
  const ended = await Promise.race([what.then(() => true), late]);
  clearTimeout(timer);
  return ended;
}

/** Waits until something holds; says what it was waiting for if it never does. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  within = 60_000,
): Promise<NonNullable<T>> {
  const end = Date.now() + within;
  for (;;) {
    const found = await look();
    if (found) return found as NonNullable<T>;
    if (Date.now() > end) throw new Error(`it never came: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

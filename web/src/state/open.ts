/**
 * Keeps the session that is open on the page in sync with the server.
 *
 * An idle session is read with plain requests, which change nothing. The live channel is opened
 * only for a session that is working or waiting, since opening it makes the server drive the
 * session. The feed reports changes to sessions without a channel. After any failure, reading
 * resumes after the last event received: nothing is lost or shown twice.
 */

import type { Frame, Greeting } from '../proto.gen';
import * as api from '../net/api';
import { Channel } from '../net/channel';
import { addEvent, copy, empty, fold, greet, type Session } from './fold';
import { get, isActive, set } from './store';

/** Milliseconds a channel stays open after the task ended, since the next prompt may come soon. */
const LINGER = 2000;
/** Minimum milliseconds between two renders while streaming. */
const PAUSE = 40;

class Open {
  private readonly state: Session;
  private channel: Channel | null = null;
  private frames: Frame[] = [];
  private planned = false;
  private drawn = 0;
  private closed = false;
  private leaving = 0;
  private greeted = false;
  private read: Promise<void> | null = null;
  private asked = '';

  constructor(readonly id: string) {
    this.state = empty(id);
    set({ opened: { id, session: null, asks: [], link: 'rest', trouble: null, error: null } });
    void this.catchUp();
  }

  close() {
    this.closed = true;
    window.clearTimeout(this.leaving);
    this.channel?.close();
    this.channel = null;
  }

  /** The feed reported a change; checks whether it concerns this session. */
  look() {
    const row = get().overview?.sessions.find((s) => s.id === this.id);
    if (!row || this.read) return;
    if (this.channel) return this.maybeLeave();
    if (isActive(row)) this.connect();
    else if (row.seq > this.state.seq) void this.catchUp();
  }

  /** Opens the live channel, for example to watch the effect of a command. */
  connect() {
    window.clearTimeout(this.leaving);
    this.leaving = 0;
    if (this.channel || this.closed) return;
    this.greeted = false;
    this.channel = new Channel({
      path: () => `/api/sessions/${encodeURIComponent(this.id)}/live?from=${this.last()}`,
      up: (is, why) => {
        this.greeted = false;
        this.patch({ link: is ? 'up' : 'down', ...(why ? { trouble: why } : {}) });
        if (!is) void check();
      },
      message: (value) => this.heard(value),
    });
  }

  /** The last event received, folded or not. */
  private last(): number {
    return this.frames.reduce(
      (n, f) => (typeof f === 'object' && 'event' in f ? Math.max(n, f.event.seq) : n),
      this.state.seq,
    );
  }

  private heard(value: unknown) {
    if (!this.greeted) {
      this.greeted = true;
      this.patch({ trouble: null });
      greet(this.state, value as Greeting);
      return;
    }
    this.frames.push(value as Frame);
    if (this.planned) return;
    this.planned = true;
    // One render for all frames since the last. A hidden page gets no frames, so use a timer.
    const pause = document.hidden ? 100 : PAUSE - (performance.now() - this.drawn);
    if (document.hidden) setTimeout(() => this.flush(), pause);
    else if (pause > 0) setTimeout(() => requestAnimationFrame(() => this.flush()), pause);
    else requestAnimationFrame(() => this.flush());
  }

  private flush() {
    this.planned = false;
    this.drawn = performance.now();
    if (this.closed) return;
    const now = Date.now();
    for (const frame of this.frames.splice(0)) {
      // Never skip a gap: read the missing events from the log.
      if (typeof frame === 'object' && 'event' in frame && frame.event.seq > this.state.seq + 1) {
        void this.catchUp();
        break;
      }
      fold(this.state, frame, now);
    }
    this.show();
    this.maybeLeave();
  }

  private show() {
    this.patch({ session: copy(this.state), error: null });
    const questions = this.state.questions.map((q) => q.hash).join();
    if (questions !== this.asked) {
      this.asked = questions;
      if (questions) void this.askMore();
      else this.patch({ asks: [] });
    }
  }

  /** Asks the server for the effect of the open questions and the rules they offer. */
  private async askMore() {
    const wanted = this.asked;
    try {
      const view = await api.read(this.id, Number.MAX_SAFE_INTEGER, 0);
      if (!this.closed && wanted === this.asked) this.patch({ asks: view.questions });
    } catch {
      if (!this.closed && wanted === this.asked)
        setTimeout(() => wanted === this.asked && !this.closed && void this.askMore(), 1000);
    }
  }

  /** Reads the events that are missing here. */
  private catchUp(): Promise<void> {
    this.read ??= this.pages().finally(() => {
      this.read = null;
      this.look();
    });
    return this.read;
  }

  private async pages() {
    for (let pause = 300; !this.closed;) {
      try {
        const view = await api.read(this.id, this.state.seq);
        if (this.closed) return;
        for (const record of view.events) addEvent(this.state, record, Date.now());
        if (!view.more && view.seq === this.state.seq) this.state.version = view.version;
        if (this.state.title === '') this.state.title = view.title;
        this.asked = this.state.questions.map((q) => q.hash).join();
        this.patch({ session: copy(this.state), asks: view.questions, error: null });
        if (!view.more) {
          if (view.state === 'working' || view.state === 'waiting') this.connect();
          return;
        }
      } catch (error) {
        if (error instanceof api.Failed && error.status !== 0 && error.status !== 503)
          return this.patch({ error: error.message });
        await new Promise((done) => setTimeout(done, pause));
        pause = Math.min(2 * pause, 3000);
      }
    }
  }

  /** Closes the channel of an idle session, since the server drives a session while one is open. */
  private maybeLeave() {
    const rests =
      !this.state.working &&
      !this.state.compacting &&
      !this.state.rewinding &&
      this.state.questions.length === 0 &&
      this.frames.length === 0;
    if (!rests) {
      window.clearTimeout(this.leaving);
      this.leaving = 0;
    } else if (this.channel && !this.leaving) {
      this.leaving = window.setTimeout(() => {
        this.leaving = 0;
        this.channel?.close();
        this.channel = null;
        this.patch({ link: 'rest' });
        this.look();
      }, LINGER);
    }
  }

  private patch(change: Partial<NonNullable<ReturnType<typeof get>['opened']>>) {
    if (!this.closed)
      set((s) => (s.opened?.id === this.id ? { opened: { ...s.opened, ...change } } : {}));
  }
}

let current: Open | null = null;
let feed: Channel | null = null;

/** Opens the session that the address names, and closes the previous one. */
export function follow() {
  const { route, auth } = get();
  const id = route.at === 'session' && auth === 'signed-in' ? route.id : null;
  if (current?.id === id) return;
  current?.close();
  current = null;
  if (id) current = new Open(id);
  else set({ opened: null });
}

export const connect = () => current?.connect();

/** Subscribes to the overview of all sessions, while this page is signed in. */
export function watchAll() {
  feed?.close();
  feed = new Channel({
    path: () => '/api/feed',
    up: (is) => {
      set({ up: is });
      if (!is) void check();
    },
    message: (value) => {
      set({ overview: value as ReturnType<typeof get>['overview'] });
      current?.look();
    },
  });
}

let checking = false;
/** After a broken channel: finds out whether the server is down or this page is signed out. */
export async function check() {
  if (checking) return;
  checking = true;
  await api.me().catch(() => {}); // `request` handles the outcome
  checking = false;
}

export function signedOut(why: string) {
  if (get().auth === 'signed-out') return;
  feed?.close();
  feed = null;
  set({ auth: 'signed-out', why });
  follow();
}

export function signedIn() {
  set({ auth: 'signed-in', why: '', up: true });
  watchAll();
  follow();
}

/**
 * The session that is open on the page, kept in step with the server.
 *
 * What rests is read by plain requests, which change nothing; the live channel is opened only for what works or waits, since
 * opening it takes a session up. The feed says when something happened that no channel told of. Whatever breaks,
 * the next try begins after the last fact that is here: nothing is lost, nothing is shown twice.
 */

import type { Frame, Greeting } from '../proto.gen';
import * as api from '../net/api';
import { Channel } from '../net/channel';
import { addEvent, copy, empty, fold, greet, type Session } from './fold';
import { get, isActive, set } from './store';

/** How long a channel stays after the work ended: the next prompt may come soon. */
const LINGER = 2000;
/** Milliseconds between two drawings of what streams. */
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

  /** The feed said something: look whether it concerns this one. */
  look() {
    const row = get().overview?.sessions.find((s) => s.id === this.id);
    if (!row || this.read) return;
    if (this.channel) return this.maybeLeave();
    if (isActive(row)) this.connect();
    else if (row.seq > this.state.seq) void this.catchUp();
  }

  /** Something was sent: whatever comes of it is watched. */
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

  /** The last fact that is here, folded or not. */
  private last(): number {
    return this.frames.reduce((n, f) => (typeof f === 'object' && 'event' in f ? Math.max(n, f.event.seq) : n), this.state.seq);
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
    // One drawing for all that came since the last, a few times as often as an eye reads; where nobody looks, a timer does.
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
      // A gap is never passed over: what is missing is read from the log.
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

  /** What a question would do and which rule it offers is known to the server. */
  private async askMore() {
    const wanted = this.asked;
    try {
      const view = await api.read(this.id, Number.MAX_SAFE_INTEGER, 0);
      if (!this.closed && wanted === this.asked) this.patch({ asks: view.questions });
    } catch {
      if (!this.closed && wanted === this.asked) setTimeout(() => wanted === this.asked && !this.closed && void this.askMore(), 1000);
    }
  }

  /** Reads the facts that are not here yet. */
  private catchUp(): Promise<void> {
    this.read ??= this.pages().finally(() => {
      this.read = null;
      this.look();
    });
    return this.read;
  }

  private async pages() {
    for (let pause = 300; !this.closed; ) {
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
        if (error instanceof api.Failed && error.status !== 0 && error.status !== 503) return this.patch({ error: error.message });
        await new Promise((done) => setTimeout(done, pause));
        pause = Math.min(2 * pause, 3000);
      }
    }
  }

  /** What rests needs no channel: a channel would keep it open for nothing. */
  private maybeLeave() {
    const rests = !this.state.working && !this.state.compacting && !this.state.rewinding && this.state.questions.length === 0 && this.frames.length === 0;
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
    if (!this.closed) set((s) => (s.opened?.id === this.id ? { opened: { ...s.opened, ...change } } : {}));
  }
}

let current: Open | null = null;
let feed: Channel | null = null;

/** The open session follows the address. */
export function follow() {
  const { route, door } = get();
  const id = route.at === 'session' && door === 'in' ? route.id : null;
  if (current?.id === id) return;
  current?.close();
  current = null;
  if (id) current = new Open(id);
  else set({ opened: null });
}

export const connect = () => current?.connect();

/** All sessions at a glance, as long as the server knows this page. */
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
/** A channel broke: is the server gone, or are we no longer known there? */
export async function check() {
  if (checking) return;
  checking = true;
  await api.me().catch(() => {}); // what it says is dealt with where requests are made
  checking = false;
}

export function leave(why: string) {
  if (get().door === 'out') return;
  feed?.close();
  feed = null;
  set({ door: 'out', why });
  follow();
}

export function enter() {
  set({ door: 'in', why: '', up: true });
  watchAll();
  follow();
}

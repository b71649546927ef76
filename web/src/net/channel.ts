/** A WebSocket that reconnects until it is closed. */

import { token } from './api';

export interface Hooks {
  /** Called for each connection, so that events already received are not requested again. */
  path: () => string;
  message: (value: unknown) => void;
  /** Whether it is connected; if not, the reason that the server gave, if any. */
  up: (is: boolean, why?: string) => void;
}

const FIRST = 200;
const LONGEST = 3000;

export class Channel {
  private socket: WebSocket | null = null;
  private timer = 0;
  private pause = FIRST;
  private closed = false;

  constructor(private readonly hooks: Hooks) {
    this.open();
    window.addEventListener('online', this.now);
    document.addEventListener('visibilitychange', this.now);
  }

  /** Reconnects now instead of waiting for the timer. */
  readonly now = () => {
    if (this.socket || this.closed) return;
    window.clearTimeout(this.timer);
    this.open();
  };

  close() {
    this.closed = true;
    window.clearTimeout(this.timer);
    window.removeEventListener('online', this.now);
    document.removeEventListener('visibilitychange', this.now);
    this.socket?.close();
  }

  private open() {
    const url = `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${this.hooks.path()}`;
    const socket = new WebSocket(url, ['dunnock', `token.${token.get()}`]);
    this.socket = socket;
    socket.onopen = () => {
      if (!this.closed) this.hooks.up(true);
    };
    socket.onmessage = (e) => {
      this.pause = FIRST; // only a message proves that the connection works
      if (!this.closed) this.hooks.message(JSON.parse(e.data as string));
    };
    socket.onclose = (e) => {
      this.socket = null;
      if (this.closed) return;
      this.hooks.up(false, e.reason);
      this.timer = window.setTimeout(() => this.open(), this.pause);
      this.pause = Math.min(2 * this.pause, LONGEST);
    };
  }
}

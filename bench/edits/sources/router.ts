import { EventEmitter } from 'node:events';

export type Handler = (request: Request, params: Params) => Promise<Response> | Response;
export type Params = Record<string, string>;

interface Route {
  method: string;
  parts: string[];
  handler: Handler;
}

export class NotFound extends Error {
  constructor(readonly path: string) {
    super(`there is nothing at ${path}`);
    this.name = 'NotFound';
  }
}

export class Router extends EventEmitter {
  private routes: Route[] = [];
  private prefix = '';

  constructor(private readonly base: string = '/') {
    super();
  }

  at(prefix: string, build: (router: Router) => void): this {
    const before = this.prefix;
    this.prefix = `${before}${prefix}`;
    try {
      build(this);
    } finally {
      this.prefix = before;
    }
    return this;
  }

  on(method: string, pattern: string, handler: Handler): this {
    const parts = `${this.prefix}${pattern}`.split('/').filter((part) => part !== '');
    this.routes.push({ method: method.toUpperCase(), parts, handler });
    return this;
  }

  get(pattern: string, handler: Handler): this {
    return this.on('GET', pattern, handler);
  }

  post(pattern: string, handler: Handler): this {
    return this.on('POST', pattern, handler);
  }

  private match(route: Route, method: string, parts: string[]): Params | undefined {
    if (route.method !== method || route.parts.length !== parts.length) {
      return undefined;
    }
    const params: Params = {};
    for (const [index, part] of route.parts.entries()) {
      const given = parts[index];
      if (part.startsWith(':')) {
        params[part.slice(1)] = decodeURIComponent(given);
      } else if (part !== given) {
        return undefined;
      }
    }
    return params;
  }

  async handle(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const parts = url.pathname.split('/').filter((part) => part !== '');
    for (const route of this.routes) {
      const params = this.match(route, request.method, parts);
      if (params !== undefined) {
        this.emit('match', url.pathname);
        return await route.handler(request, params);
      }
    }
    this.emit('miss', url.pathname);
    throw new NotFound(url.pathname);
  }
}

export function json(value: unknown, status = 200): Response {
  const body = JSON.stringify(value);
  return new Response(body, {
    status,
    headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
  });
}

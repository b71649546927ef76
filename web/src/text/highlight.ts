/** Syntax highlighting in a worker, which starts when there is code to highlight. */

export interface Token {
  text: string;
  kind: string;
}

/** Longer code is not highlighted. */
const LONGEST = 12_000;

const LANGUAGES = new Set([
  'bash',
  'c',
  'cpp',
  'csharp',
  'css',
  'diff',
  'docker',
  'go',
  'html',
  'java',
  'javascript',
  'json',
  'kotlin',
  'lua',
  'make',
  'markdown',
  'php',
  'python',
  'ruby',
  'rust',
  'sql',
  'swift',
  'toml',
  'tsx',
  'typescript',
  'xml',
  'yaml',
]);

const ALIASES: Record<string, string> = {
  sh: 'bash',
  shell: 'bash',
  zsh: 'bash',
  console: 'bash',
  h: 'c',
  cc: 'cpp',
  hpp: 'cpp',
  cxx: 'cpp',
  cs: 'csharp',
  patch: 'diff',
  dockerfile: 'docker',
  htm: 'html',
  js: 'javascript',
  mjs: 'javascript',
  cjs: 'javascript',
  jsx: 'tsx',
  ts: 'typescript',
  mts: 'typescript',
  kt: 'kotlin',
  makefile: 'make',
  md: 'markdown',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  svg: 'xml',
  yml: 'yaml',
  jsonl: 'json',
  lock: 'toml',
};

/** The language for a language name or a path, if it can be highlighted. */
export function languageOf(name: string): string | null {
  const word = (name.split('/').pop() ?? '').split('.').pop()?.toLowerCase() ?? '';
  const lang = ALIASES[word] ?? word;
  return LANGUAGES.has(lang) ? lang : null;
}

let worker: Worker | null = null;
let count = 0;
const waiting = new Map<number, (lines: Token[][] | null) => void>();

function begin(): Worker {
  const made = new Worker(new URL('./highlight.worker.ts', import.meta.url), { type: 'module' });
  made.onmessage = (e: MessageEvent<{ id: number; lines: Token[][] | null }>) => {
    waiting.get(e.data.id)?.(e.data.lines);
    waiting.delete(e.data.id);
  };
  // Without the worker only the colours are missing.
  made.onerror = () => {
    for (const done of waiting.values()) done(null);
    waiting.clear();
  };
  return made;
}

/** Tokens by line; null if the code cannot be highlighted. */
export function tokens(code: string, lang: string): Promise<Token[][] | null> {
  if (code.length > LONGEST || typeof Worker === 'undefined') return Promise.resolve(null);
  worker ??= begin();
  const id = ++count;
  worker.postMessage({ id, code, lang });
  return new Promise((done) => waiting.set(id, done));
}

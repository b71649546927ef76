/** Colours for code, fetched when there is code to colour: tokens with class names, since the page's policy lets no style be inline. */

import type { HighlighterCore, LanguageInput } from 'shiki/core';

export interface Token {
  text: string;
  kind: string;
}

/** Longer code is shown without colours: reading it would hold the page up. */
const LONGEST = 12_000;

const LANGUAGES: Record<string, () => Promise<unknown>> = {
  bash: () => import('shiki/langs/bash.mjs'),
  c: () => import('shiki/langs/c.mjs'),
  cpp: () => import('shiki/langs/cpp.mjs'),
  csharp: () => import('shiki/langs/csharp.mjs'),
  css: () => import('shiki/langs/css.mjs'),
  diff: () => import('shiki/langs/diff.mjs'),
  docker: () => import('shiki/langs/docker.mjs'),
  go: () => import('shiki/langs/go.mjs'),
  html: () => import('shiki/langs/html.mjs'),
  java: () => import('shiki/langs/java.mjs'),
  javascript: () => import('shiki/langs/javascript.mjs'),
  json: () => import('shiki/langs/json.mjs'),
  kotlin: () => import('shiki/langs/kotlin.mjs'),
  lua: () => import('shiki/langs/lua.mjs'),
  make: () => import('shiki/langs/make.mjs'),
  markdown: () => import('shiki/langs/markdown.mjs'),
  php: () => import('shiki/langs/php.mjs'),
  python: () => import('shiki/langs/python.mjs'),
  ruby: () => import('shiki/langs/ruby.mjs'),
  rust: () => import('shiki/langs/rust.mjs'),
  sql: () => import('shiki/langs/sql.mjs'),
  swift: () => import('shiki/langs/swift.mjs'),
  toml: () => import('shiki/langs/toml.mjs'),
  tsx: () => import('shiki/langs/tsx.mjs'),
  typescript: () => import('shiki/langs/typescript.mjs'),
  xml: () => import('shiki/langs/xml.mjs'),
  yaml: () => import('shiki/langs/yaml.mjs'),
};

const ALIASES: Record<string, string> = {
  sh: 'bash', shell: 'bash', zsh: 'bash', console: 'bash', h: 'c', cc: 'cpp', hpp: 'cpp', cxx: 'cpp', cs: 'csharp', patch: 'diff', dockerfile: 'docker', htm: 'html',
  js: 'javascript', mjs: 'javascript', cjs: 'javascript', jsx: 'tsx', ts: 'typescript', mts: 'typescript', kt: 'kotlin', makefile: 'make', md: 'markdown', py: 'python',
  rb: 'ruby', rs: 'rust', svg: 'xml', yml: 'yaml', jsonl: 'json', lock: 'toml',
};

/** The language of a name or of a path's ending, if it is one that we can colour. */
export function languageOf(name: string): string | null {
  const word = (name.split('/').pop() ?? '').split('.').pop()?.toLowerCase() ?? '';
  const lang = ALIASES[word] ?? word;
  return Object.hasOwn(LANGUAGES, lang) ? lang : null;
}

let core: Promise<HighlighterCore> | null = null;
const ready = new Set<string>();

async function highlighter(lang: string): Promise<HighlighterCore> {
  core ??= (async () => {
    const [{ createHighlighterCore, createCssVariablesTheme }, { createJavaScriptRegexEngine }] = await Promise.all([
      import('shiki/core'),
      import('shiki/engine/javascript'),
    ]);
    const theme = createCssVariablesTheme({ name: 'ours', variablePrefix: '--', fontStyle: false });
    return createHighlighterCore({ themes: [theme], langs: [], engine: createJavaScriptRegexEngine({ forgiving: true }) });
  })();
  const h = await core;
  if (!ready.has(lang)) {
    await h.loadLanguage(LANGUAGES[lang] as LanguageInput);
    ready.add(lang);
  }
  return h;
}

/** A colour of the theme is the name of a variable: `var(--token-keyword)`. */
const kindOf = (colour: string | undefined) => /^var\(--token-([a-z-]+)\)$/.exec(colour ?? '')?.[1] ?? '';

/** Lines of tokens; nothing where there is no language for it. */
export async function tokens(code: string, lang: string): Promise<Token[][] | null> {
  if (code.length > LONGEST) return null;
  try {
    const h = await highlighter(lang);
    return h.codeToTokensBase(code, { lang, theme: 'ours', tokenizeTimeLimit: 40 }).map((line) => line.map((t) => ({ text: t.content, kind: kindOf(t.color) })));
  } catch {
    return null; // colours are a comfort, never a need
  }
}

/**
 * Highlights code in a worker, so that the page never waits for it. Tokens have kinds instead of
 * styles, since the content security policy forbids inline styles.
 */

import type { HighlighterCore, LanguageInput } from 'shiki/core';
import type { Token } from './highlight';

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

let core: Promise<HighlighterCore> | null = null;
const ready = new Set<string>();

async function highlighter(lang: string): Promise<HighlighterCore> {
  core ??= (async () => {
    const [{ createHighlighterCore, createCssVariablesTheme }, { createJavaScriptRegexEngine }] =
      await Promise.all([import('shiki/core'), import('shiki/engine/javascript')]);
    const theme = createCssVariablesTheme({ name: 'ours', variablePrefix: '--', fontStyle: false });
    return createHighlighterCore({
      themes: [theme],
      langs: [],
      engine: createJavaScriptRegexEngine({ forgiving: true }),
    });
  })();
  const h = await core;
  if (!ready.has(lang)) {
    await h.loadLanguage(LANGUAGES[lang] as LanguageInput);
    ready.add(lang);
  }
  return h;
}

/** The kind of a token, from a colour of the theme such as `var(--token-keyword)`. */
const kindOf = (colour: string | undefined) =>
  /^var\(--token-([a-z-]+)\)$/.exec(colour ?? '')?.[1] ?? '';

async function tokens(code: string, lang: string): Promise<Token[][] | null> {
  try {
    const h = await highlighter(lang);
    return h
      .codeToTokensBase(code, { lang, theme: 'ours', tokenizeTimeLimit: 200 })
      .map((line) => line.map((t) => ({ text: t.content, kind: kindOf(t.color) })));
  } catch {
    return null; // code is readable without colours
  }
}

self.onmessage = async (e: MessageEvent<{ id: number; code: string; lang: string }>) => {
  self.postMessage({ id: e.data.id, lines: await tokens(e.data.code, e.data.lang) });
};

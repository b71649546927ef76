/** Text from a model, a file or a program, made safe to look at. The same rules as in the terminal (`dunnock-tui/src/text.rs`). */

/** Characters that show nothing and change how others are shown: the format characters of Unicode. */
const INVISIBLE =
  /[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

const written = (c: string) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`;

/** Control and invisible characters are written out; line breaks and tabs stay. */
export function visible(text: string): string {
  return text.replace(CONTROL, written).replace(INVISIBLE, written);
}

/**
 * The same for talk, where what joins letters and pictures of several parts may stand between them: emoji, Persian, Indic
 * scripts. Nothing of it is decided on.
 */
export function prose(text: string): string {
  return text.replace(CONTROL, written).replace(INVISIBLE, (c, at: number) => (/[\u200c\u200d\ufe0f\ufe0e]/.test(c) && JOINS.test(text.slice(Math.max(0, at - 2), at)) ? c : written(c)));
}
const JOINS = /[\p{L}\p{M}\p{Emoji}\u200d\ufe0f]$/u;

/** The same on one line: a title cannot pretend to be another row. */
export function oneLine(text: string): string {
  return visible(text).replace(/\n/g, ' ').replace(/\t/g, '    ');
}

/** Runs of more than eight blanks inside a line, by their count, so that nothing can stand where nobody looks. */
export function folded(line: string): string {
  const body = line.replace(/^[ \t]+/, '');
  const indent = line.slice(0, line.length - body.length);
  const start = indent.length <= 40 ? indent : `⟨${indent.length} blanks⟩`;
  return start + body.replace(/[ \t\u00a0\u3000]{9,}/g, (run) => `⟨${run.length} blanks⟩`);
}

/** What is odd about a text that a person is to decide on. */
export function warnings(text: string): string[] {
  const found: string[] = [];
  if (visible(text) !== text || /\\u00|\\r/.test(text)) {
    found.push('it has characters that cannot be seen, or that would change what is seen; they are written out');
  }
  for (const word of text.split(/[^\p{L}\p{N}._-]+/u)) {
    // oxlint-disable-next-line no-control-regex -- all that is not ASCII
    if (!word.includes('.') || !/[^\u0000-\u007f]/.test(word) || !/\p{L}/u.test(word)) continue;
    try {
      const ascii = new URL(`http://${word}/`).hostname;
      if (ascii.includes('xn--')) found.push(`“${word}” is not written in plain letters; it is ${ascii}`);
    } catch {
      // not a name that anything could be reached by
    }
  }
  return [...new Set(found)];
}

/** Where a link of a model may lead: nowhere that runs or fetches by itself. */
export function safeLink(url: string): string | null {
  try {
    const to = new URL(url);
    return ['http:', 'https:', 'mailto:'].includes(to.protocol) ? to.href : null;
  } catch {
    return null;
  }
}

const encoder = new TextEncoder();

/** Bytes of a text: offsets on the link are in bytes. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** What of a piece that begins at byte `offset` is new to somebody who has `have` bytes. */
export function fresh(have: number, offset: number, text: string): string {
  let skip = have - offset;
  if (skip <= 0) return text;
  let at = 0;
  for (const c of text) {
    if (skip <= 0) break;
    skip -= byteLength(c);
    at += c.length;
  }
  return text.slice(at);
}

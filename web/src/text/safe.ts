/**
 * Makes text from models, files and programs safe to display, by the rules of the terminal app
 * (`dunnock-tui/src/text.rs`).
 */

/**
 * Invisible characters and those that change how others are displayed (Unicode format characters).
 */
const INVISIBLE =
  /[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
// oxlint-disable-next-line no-control-regex -- matches control characters on purpose
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

const written = (c: string) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`;

/** Escapes control and invisible characters, except line breaks and tabs. */
export function visible(text: string): string {
  return text.replace(CONTROL, written).replace(INVISIBLE, written);
}

/**
 * The same for conversation text, where joiners stay if they join letters of a script that needs
 * them (Persian, Hindi) or the parts of an emoji. Never used for text that needs a decision.
 */
export function prose(text: string): string {
  const plain = text.replace(CONTROL, written);
  return plain.replace(INVISIBLE, (c, at: number) => {
    const before = plain.slice(Math.max(0, at - 2), at);
    const after = plain.slice(at + 1, at + 3);
    const letters = LETTER_BEFORE.test(before) && LETTER_AFTER.test(after);
    const pictures = PART_BEFORE.test(before) && PICTURE_AFTER.test(after);
    const joins =
      c === '\u200c'
        ? letters
        : c === '\u200d'
          ? letters || pictures
          : c === '\ufe0f' && PICTURE_BEFORE.test(before);
    return joins ? c : written(c);
  });
}
/** Letters and marks of scripts in which joiners change how words are written. */
const LETTER =
  '[\\u0620-\\u06dc\\u06de-\\u070e\\u0710-\\u0dff\\u1000-\\u109f\\u1780-\\u17b3\\u17b6-\\u17ff\\u1820-\\u18aa\\ua840-\\ua877\\ufb50-\\ufdff\\ufe70-\\ufefc]';
const PICTURE = '\\p{Extended_Pictographic}';
const LETTER_BEFORE = new RegExp(`${LETTER}$`, 'u');
const LETTER_AFTER = new RegExp(`^${LETTER}`, 'u');
const PART_BEFORE = new RegExp(`(?:${PICTURE}|[\\ufe0f\\u{1f3fb}-\\u{1f3ff}])$`, 'u');
const PICTURE_BEFORE = new RegExp(`${PICTURE}$`, 'u');
const PICTURE_AFTER = new RegExp(`^${PICTURE}`, 'u');

/** The same on one line, so that a title cannot imitate another row. */
export function oneLine(text: string): string {
  return visible(text).replace(/\n/g, ' ').replace(/\t/g, '    ');
}

/** Replaces long runs of blanks with their count, so that nothing can hide far to the right. */
export function folded(line: string): string {
  const body = line.replace(/^[ \t]+/, '');
  const indent = line.slice(0, line.length - body.length);
  const start = indent.length <= 40 ? indent : `⟨${indent.length} spaces⟩`;
  return start + body.replace(/[ \t\u00a0\u3000]{9,}/g, (run) => `⟨${run.length} spaces⟩`);
}

/** Warnings about suspicious characters in a text that needs a decision. */
export function warnings(text: string): string[] {
  const found: string[] = [];
  if (visible(text) !== text || /\\u00|\\r/.test(text)) {
    found.push(
      'it has characters that cannot be seen, or that change how text is displayed; they are shown escaped',
    );
  }
  for (const word of text.split(/[^\p{L}\p{N}._-]+/u)) {
    // oxlint-disable-next-line no-control-regex -- matches non-ASCII characters
    if (!word.includes('.') || !/[^\u0000-\u007f]/.test(word) || !/\p{L}/u.test(word)) continue;
    try {
      const ascii = new URL(`http://${word}/`).hostname;
      if (ascii.includes('xn--'))
        found.push(`“${word}” has non-ASCII letters; as a host name it is ${ascii}`);
    } catch {
      // not a valid host name
    }
  }
  return [...new Set(found)];
}

/**
 * The URL of a model's link if it is http, https or mailto; others may run or fetch on their own.
 */
export function safeLink(url: string): string | null {
  try {
    const to = new URL(url);
    return ['http:', 'https:', 'mailto:'].includes(to.protocol) ? to.href : null;
  } catch {
    return null;
  }
}

const encoder = new TextEncoder();

/** Length in UTF-8 bytes, the unit of offsets in the live channel. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** The part of `text`, which starts at byte `offset`, that comes after the first `have` bytes. */
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

/**
 * Program output: colours from an allowlist of SGR codes; all other escape sequences are removed.
 */

export interface Span {
  text: string;
  /** Class names, from a fixed set. */
  style: string;
}

const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const;

/**
 * Escape sequences: CSI, OSC and other strings, two-character ones. An unterminated string ends
 * with its line.
 */
const SEQUENCE =
  // oxlint-disable-next-line no-control-regex -- matches control characters on purpose
  /\u001b(?:\[([0-9;:<=>?!"'$ -/]*)([@-~])?|[\]PX^_][^\u0007\u001b\n\u009c]*(?:\u0007|\u001b\\|\u009c)?|[()*+#% ].|.)?/g;

interface Pen {
  fg: string;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
}

const plain = (): Pen => ({ fg: '', bold: false, dim: false, italic: false, underline: false });

function apply(pen: Pen, codes: string) {
  const list = codes === '' ? [0] : codes.split(/[;:]/).map(Number);
  for (let n = 0; n < list.length; n++) {
    const code = list[n] ?? 0;
    if (code === 0) Object.assign(pen, plain());
    else if (code === 1) pen.bold = true;
    else if (code === 2) pen.dim = true;
    else if (code === 3) pen.italic = true;
    else if (code === 4) pen.underline = true;
    else if (code === 22) pen.bold = pen.dim = false;
    else if (code === 23) pen.italic = false;
    else if (code === 24) pen.underline = false;
    else if (code >= 30 && code <= 37) pen.fg = COLOURS[code - 30] ?? '';
    else if (code >= 90 && code <= 97) pen.fg = COLOURS[code - 90] ?? '';
    else if (code === 39) pen.fg = '';
    else if (code === 38 || code === 48) n += list[n + 1] === 5 ? 2 : 4; // indexed and RGB colours are skipped
  }
}

const styled = (pen: Pen) =>
  [
    pen.fg && `sgr-${pen.fg}`,
    pen.bold && 'sgr-bold',
    pen.dim && 'sgr-dim',
    pen.italic && 'sgr-italic',
    pen.underline && 'sgr-underline',
  ]
    .filter(Boolean)
    .join(' ');

/** Of a line overwritten by carriage returns, only the last version is shown. */
const drawn = (text: string) =>
  text.includes('\r')
    ? text
        .split('\n')
        .map((line) => line.replace(/\r+$/, '').split('\r').pop() ?? '')
        .join('\n')
    : text;

export function spans(text: string): Span[] {
  const out: Span[] = [];
  const pen = plain();
  const put = (piece: string) => {
    if (!piece) return;
    const style = styled(pen);
    const last = out[out.length - 1];
    if (last && last.style === style) last.text += piece;
    else out.push({ text: piece, style });
  };
  let at = 0;
  const source = drawn(text);
  for (const match of source.matchAll(SEQUENCE)) {
    put(source.slice(at, match.index));
    if (match[2] === 'm' && /^[0-9;:]*$/.test(match[1] ?? '')) apply(pen, match[1] ?? '');
    at = match.index + match[0].length;
  }
  put(source.slice(at));
  return out;
}

export function withoutSequences(text: string): string {
  return drawn(text.replace(SEQUENCE, ''));
}

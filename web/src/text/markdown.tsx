/**
 * Renders a model's Markdown as React elements: no raw HTML, no fetched images, no links that run
 * code.
 *
 * It is rendered block by block. While text streams in, a block that is followed by two others can
 * no longer change, so only the last blocks are parsed again; React keeps the rest (`memo`).
 */

import type { Definition, Nodes, RootContent, Table } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';
import { createElement, Fragment, memo, useRef, type ReactNode } from 'react';
import { Code } from '../ui/Code';
import { prose, safeLink, visible } from './safe';
import styles from './markdown.module.css';

const parse = (text: string) =>
  fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });

const SAMPLES = [
  '## A\n\nwords `code` **b** *i* [l](https://a.example)\n\n',
  '- one\n- two\n\n1. a\n2. b\n',
  '```rs\nfn a() {}\n```\n\nmore\n',
  '| a | b |\n|---|--:|\n| 1 | 2 |\n',
  '> q ~~no~~ https://a.example\n\n---\n',
];

/** Warms up the parser while the page is idle, so that the first answer renders quickly. */
export function warm(round = 0): void {
  if (typeof requestIdleCallback === 'undefined' || round >= 8 * SAMPLES.length) return;
  requestIdleCallback(() => {
    parse((SAMPLES[round % SAMPLES.length] as string).repeat(2));
    warm(round + 1);
  });
}

/** A text split into finished blocks and a tail that may still change. */
export interface Cut {
  /**
   * Blocks in groups, so that a render compares groups instead of all blocks. A full group never
   * changes.
   */
  groups: readonly (readonly string[])[];
  /** Length of all finished blocks. */
  done: number;
  tail: string;
}

export const NOTHING: Cut = { groups: [], done: 0, tail: '' };
const GROUP = 16;

function joined(groups: readonly (readonly string[])[], more: string[]): (readonly string[])[] {
  const all = groups.slice();
  for (const block of more) {
    const last = all[all.length - 1];
    if (last && last.length < GROUP) all[all.length - 1] = [...last, block];
    else all.push([block]);
  }
  return all;
}

/** Blocks that may still change: the last one, and the one before it, which may absorb it. */
const OPEN = 2;
/**
 * A code block at the start of a text. It may be long and needs no parsing; `end` is where it ends,
 * or null while it is still open.
 */
function fenced(tail: string): { lang: string; code: string; end: number | null } | null {
  const head = /^ {0,3}(`{3,}|~{3,})([^\n`]*)\n/.exec(tail);
  if (!head) return null;
  const [whole, fence = '', info = ''] = head;
  const ends = new RegExp(`^ {0,3}${fence[0] === '`' ? '`' : '~'}{${fence.length},}[ \\t]*$`, 'm');
  const code = tail.slice(whole.length);
  const lang = info.trim().split(/\s/)[0] ?? '';
  const closed = ends.exec(code);
  if (!closed) return { lang, code, end: null };
  return {
    lang,
    code: code.slice(0, Math.max(0, closed.index - 1)),
    end: whole.length + closed.index + closed[0].length,
  };
}

/** From this length on, a tail is checked for finished blocks. */
const LONG = 400;

/** Nodes parsed while splitting, kept so that rendering does not parse them again. */
const fresh = new Map<string, RootContent[]>();
function remember(source: string, nodes: RootContent[]): void {
  if (fresh.size > 200) fresh.clear();
  fresh.set(source, nodes);
}

/** Splits a text that extends the one in `before`. */
export function cut(before: Cut, text: string): Cut {
  let { groups, done } = before;
  let tail = text.slice(done);
  const code = fenced(tail);
  if (tail.length < LONG || (code && code.end === null)) return { groups, done, tail };
  if (code?.end && code.end < tail.length) {
    const block = tail.slice(0, code.end + 1);
    remember(block, [{ type: 'code', lang: code.lang, value: code.code }]);
    return cut({ groups: joined(groups, [block]), done: done + block.length, tail: '' }, text);
  }
  // In pieces, so that even a long text is parsed only once.
  for (;;) {
    const piece =
      tail.length > 16_000
        ? tail.slice(0, tail.lastIndexOf('\n\n', 16_000) + 2 || tail.length)
        : tail;
    const nodes = parse(piece).children;
    // Everything before an open code block is finished.
    const open = nodes[nodes.length - 1]?.type === 'code' ? 1 : OPEN;
    const keep = piece.length < tail.length ? nodes.length - 1 : nodes.length - open;
    const until = keep > 0 ? (nodes[keep]?.position?.start.offset ?? 0) : 0;
    const ends = nodes.slice(1, keep + 1).map((node) => node.position?.start.offset ?? 0);
    const more = ends.map((end, n) => tail.slice(ends[n - 1] ?? 0, end));
    more.forEach((block, n) => remember(block, nodes.slice(n, n + 1)));
    groups = joined(groups, more);
    done += until;
    tail = tail.slice(until);
    if (piece.length === tail.length + until) remember(tail, nodes.slice(Math.max(0, keep)));
    if (until === 0 || piece.length === tail.length + until) return { groups, done, tail };
  }
}

interface Around {
  links: Map<string, Definition>;
  /** The level of the last heading; the next is at most one deeper. */
  level: { now: number };
  live: boolean;
}

function text(children: Nodes[], a: Around): ReactNode[] {
  return children.map((node, n) => <Fragment key={n}>{draw(node, a)}</Fragment>);
}

function link(url: string, inner: ReactNode[], words: string): ReactNode {
  const to = safeLink(url);
  if (!to)
    return (
      <>
        {inner} <span className="faint">({visible(url)})</span>
      </>
    );
  const host = to.startsWith('mailto:') ? to.slice(7) : new URL(to).host;
  // The host is left out if the link text is itself a URL with the same host and protocol.
  const own = safeLink(words.trim());
  const same =
    own !== null &&
    new URL(own).host === new URL(to).host &&
    new URL(own).protocol === new URL(to).protocol;
  return (
    <a href={to} target="_blank" rel="noreferrer noopener" title={to}>
      {inner}
      {same ? null : <span className="faint"> ({host})</span>}
    </a>
  );
}

const plain = (node: Nodes): string =>
  'value' in node
    ? node.value
    : 'children' in node
      ? node.children.map((c) => plain(c)).join('')
      : '';

function draw(node: Nodes, a: Around): ReactNode {
  switch (node.type) {
    case 'text':
      return prose(node.value);
    case 'html':
      return <span className={styles.raw}>{visible(node.value)}</span>;
    case 'paragraph':
      return <p>{text(node.children, a)}</p>;
    case 'heading': {
      const level = Math.min(node.depth + 1, a.level.now + 1, 6);
      a.level.now = level;
      return createElement(
        `h${level}`,
        { className: node.depth <= 2 ? styles.underlined : undefined },
        text(node.children, a),
      );
    }
    case 'emphasis':
      return <em>{text(node.children, a)}</em>;
    case 'strong':
      return <strong>{text(node.children, a)}</strong>;
    case 'delete':
      return <del>{text(node.children, a)}</del>;
    case 'inlineCode':
      return <code>{visible(node.value)}</code>;
    case 'code':
      return <Code code={node.value} lang={node.lang ?? ''} live={a.live} />;
    case 'break':
      return <br />;
    case 'thematicBreak':
      return <hr />;
    case 'blockquote':
      return <blockquote>{text(node.children, a)}</blockquote>;
    case 'list': {
      const items = node.children.map((item, n) => (
        <li key={n} className={item.checked == null ? undefined : styles.task}>
          {item.checked == null ? null : (
            <span aria-label={item.checked ? 'done' : 'to do'} role="img">
              {item.checked ? '☑' : '☐'}
            </span>
          )}
          {item.children.map((child, m) => (
            <Fragment key={m}>
              {child.type === 'paragraph' && !node.spread
                ? text(child.children, a)
                : draw(child, a)}
            </Fragment>
          ))}
        </li>
      ));
      return node.ordered ? <ol start={node.start ?? 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case 'table':
      return table(node, a);
    case 'link':
      return link(node.url, text(node.children, a), plain(node));
    case 'linkReference': {
      const to = a.links.get(node.identifier);
      return to ? (
        link(to.url, text(node.children, a), plain(node))
      ) : (
        <>[{text(node.children, a)}]</>
      );
    }
    // A model could name any URL, so images are not fetched; their description is shown.
    case 'image':
      return link(node.url, [`image: ${visible(node.alt ?? '') || 'no description'}`], '');
    case 'imageReference':
      return <>[image: {visible(node.alt ?? '')}]</>;
    case 'footnoteReference':
      return <sup>{visible(node.label ?? node.identifier)}</sup>;
    case 'footnoteDefinition':
      return (
        <div>
          <sup>{visible(node.label ?? node.identifier)}</sup> {text(node.children, a)}
        </div>
      );
    case 'definition':
    case 'yaml':
      return null;
    default:
      return 'children' in node ? text(node.children as Nodes[], a) : null;
  }
}

const ALIGN = { left: undefined, center: 'align-center', right: 'align-right' };

function table(node: Table, a: Around): ReactNode {
  const [head, ...rows] = node.children;
  const side = (n: number) => ALIGN[node.align?.[n] ?? 'left'];
  return (
    <div className="scroll-x" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>
            {head?.children.map((cell, n) => (
              <th key={n} className={side(n)}>
                {text(cell.children, a)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, m) => (
            <tr key={m}>
              {row.children.map((cell, n) => (
                <td key={n} className={side(n)}>
                  {text(cell.children, a)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const Block = memo(function Block({
  source,
  level,
  live,
}: {
  source: string;
  level: number;
  live: boolean;
}) {
  const nodes = fresh.get(source) ?? parse(source).children;
  const links = new Map(nodes.filter((n) => n.type === 'definition').map((d) => [d.identifier, d]));
  return <div className={styles.block}>{text(nodes, { links, level: { now: level }, live })}</div>;
});

const Group = memo(function Group({ blocks, level }: { blocks: readonly string[]; level: number }) {
  // Headings go at most one level deeper; after the first, the next may be one deeper.
  const first = blocks.findIndex((block) => block.startsWith('#'));
  return (
    <div className={styles.group}>
      {blocks.map((block, n) => (
        <Block
          key={n}
          source={block}
          level={level > 1 || (first >= 0 && n > first) ? 2 : 1}
          live={false}
        />
      ))}
    </div>
  );
});

export const Markdown = memo(function Markdown({
  source,
  live,
}: {
  source: string;
  live: boolean;
}) {
  const kept = useRef<{ text: string; cut: Cut }>({ text: '', cut: NOTHING });
  const now = cut(source.startsWith(kept.current.text) ? kept.current.cut : NOTHING, source);
  kept.current = { text: source, cut: now };
  const first = now.groups.findIndex((group) => group.some((block) => block.startsWith('#')));
  const fence = fenced(now.tail);
  const level = (n: number) => (first >= 0 && n > first ? 2 : 1);
  return (
    <div className={styles.markdown} dir="auto">
      {now.groups.map((group, n) => (
        <Group key={n} blocks={group} level={level(n)} />
      ))}
      {fence && (fence.end === null || now.tail.slice(fence.end).trim() === '') ? (
        <div className={styles.block}>
          <Code code={fence.code} lang={fence.lang} live={live} />
        </div>
      ) : now.tail ? (
        <Block source={now.tail} level={first >= 0 ? 2 : 1} live={live} />
      ) : null}
    </div>
  );
});

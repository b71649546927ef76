/** The input: prompts, files with @, commands with /, pasted images. */

import { useQuery } from '@tanstack/react-query';
import {
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type ClipboardEvent,
  type KeyboardEvent,
  type ReactNode,
} from 'react';
import * as api from '../net/api';
import type { Picture } from '../state/actions';
import { commands, run, type Slash } from '../state/commands';
import { tell } from '../state/store';
import { visible } from '../text/safe';
import { classes } from './classes';
import { Button } from './parts';
import styles from './Composer.module.css';

/** The bottom of the page. If something needs the user, it gets the room of a narrow page. */
export const Dock = ({
  needsYou = false,
  children,
}: {
  needsYou?: boolean;
  children: ReactNode;
}) => <div className={classes(styles.dock, needsYou && styles.needsYou)}>{children}</div>;

/** The line below the input. */
export const Status = ({ children }: { children: ReactNode }) => (
  <p className={styles.status}>{children}</p>
);

interface Props {
  session: string | null;
  workspace?: string;
  own: { name: string; description: string; text: string }[];
  placeholder: string;
  send: (text: string, pictures: Picture[]) => Promise<boolean>;
  /** Called on Escape when no menu is open. */
  stop?: () => void;
  /** Controls next to the buttons. */
  children?: ReactNode;
  autoFocus?: boolean;
}

interface Entry {
  put: string;
  about: string;
}

// Per tab, and deleted with it: another program may later serve this address.
const kept = sessionStorage;
export const draftOf = (id: string | null, workspace?: string) =>
  `dunnock.draft.${id ?? workspace ?? 'new'}`;
const HISTORY = 'dunnock.history';
const history = (): string[] => {
  try {
    const past: unknown = JSON.parse(kept.getItem(HISTORY) ?? '[]');
    return Array.isArray(past) ? past.filter((t) => typeof t === 'string') : [];
  } catch {
    return [];
  }
};
const remember = (text: string) =>
  kept.setItem(
    HISTORY,
    JSON.stringify([text, ...history().filter((t) => t !== text)].slice(0, 200)),
  );

/** The word before the cursor, if it opens a menu. */
function word(text: string, at: number): { sign: '@' | '/'; letters: string; from: number } | null {
  const before = text.slice(0, at);
  const file = /(^|\s)@([^\s@]*)$/.exec(before);
  if (file) return { sign: '@', letters: file[2] ?? '', from: at - (file[2] ?? '').length - 1 };
  const slash = /^\/([a-z-]*)$/.exec(before);
  return slash ? { sign: '/', letters: slash[1] ?? '', from: 0 } : null;
}

const fits = (name: string, letters: string) => {
  let at = 0;
  for (const c of letters) {
    at = name.indexOf(c, at) + 1;
    if (at === 0) return false;
  }
  return true;
};

export function Composer({
  session,
  workspace,
  own,
  placeholder,
  send,
  stop,
  children,
  autoFocus,
}: Props) {
  const [text, setText] = useState(() => kept.getItem(draftOf(session, workspace)) ?? '');
  const [cursor, setCursor] = useState(0);
  const [chosen, setChosen] = useState(0);
  const [shut, setShut] = useState<string | null>(null);
  const [pictures, setPictures] = useState<Picture[]>([]);
  const [sending, setSending] = useState(false);
  const [back, setBack] = useState(-1);
  const field = useRef<HTMLTextAreaElement>(null);

  useEffect(() => {
    if (text) kept.setItem(draftOf(session, workspace), text);
    else kept.removeItem(draftOf(session, workspace));
  }, [text, session, workspace]);
  useLayoutEffect(() => {
    const el = field.current;
    if (!el) return;
    el.style.height = 'auto';
    el.style.height = `${Math.min(el.scrollHeight, 240)}px`;
  }, [text]);
  useEffect(() => {
    // Not on touch screens, where it would open the keyboard over half of the page.
    if (autoFocus && !window.matchMedia('(pointer: coarse)').matches) field.current?.focus();
    // Only on mount; after that, do not take the focus away.
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- see above
  }, []);

  const about = word(text, cursor);
  const open = about && shut !== text ? about : null;
  const files = useQuery({
    queryKey: ['files', session, workspace, open?.letters],
    queryFn: () => api.files(session, open?.letters ?? '', workspace),
    enabled: open?.sign === '@',
    placeholderData: (old) => old,
  });
  const current = !files.isPlaceholderData;
  const slashes: Slash[] = commands(session !== null, own);
  const entries: Entry[] = !open
    ? []
    : open.sign === '@'
      ? (current ? (files.data?.files ?? []) : [])
          .slice(0, 8)
          .map((path) => ({ put: `@${path} `, about: '' }))
      : slashes
          .filter((c) => fits(c.name, open.letters))
          .sort(
            (a, b) =>
              Number(b.name.startsWith(open.letters)) - Number(a.name.startsWith(open.letters)),
          )
          .slice(0, 8)
          .map((c) => ({
            put: `/${c.name}${c.args ? ' ' : ''}`,
            about: `${c.args} ${c.about}`.trim(),
          }));
  const at = Math.min(chosen, entries.length - 1);

  const place = (next: string, to: number) => {
    setText(next);
    setCursor(to);
    setChosen(0);
    requestAnimationFrame(() => field.current?.setSelectionRange(to, to));
  };
  const take = (entry: Entry) => {
    if (!open) return;
    const next = text.slice(0, open.from) + entry.put + text.slice(cursor);
    place(next, open.from + entry.put.length);
    field.current?.focus();
    if (open.sign === '/' && !entry.put.endsWith(' ')) void submit(entry.put);
  };

  async function submit(whole = text) {
    const words = whole.trim();
    if ((!words && pictures.length === 0) || sending) return;
    // A path is not a command.
    if (/^\/[a-z-]+( |$)/.test(words)) {
      const done = run(words, session, own);
      if (done === true) return place('', 0);
      if (done === null)
        return tell(`Unknown command ${words.split(' ')[0]}. Type / to see all commands.`, 'bad');
      return deliver(done);
    }
    return deliver(words);
  }

  async function deliver(words: string) {
    setSending(true);
    const taken = await send(words, pictures);
    setSending(false);
    if (taken) {
      remember(words);
      kept.removeItem(draftOf(session, workspace)); // the page may navigate away before the next render
      setPictures([]);
      setBack(-1);
      place('', 0);
    }
    requestAnimationFrame(() => field.current?.focus());
  }

  const pressed = (e: KeyboardEvent<HTMLTextAreaElement>) => {
    if (e.nativeEvent.isComposing) return;
    if (entries.length > 0) {
      const step = e.key === 'ArrowDown' ? 1 : e.key === 'ArrowUp' ? -1 : 0;
      if (step) {
        e.preventDefault();
        return setChosen((at + step + entries.length) % entries.length);
      }
      if (e.key === 'Tab' || e.key === 'Enter') {
        e.preventDefault();
        return take(entries[at] as Entry);
      }
    }
    if (e.key === 'Enter' && !e.shiftKey) {
      e.preventDefault();
      void submit();
    } else if (e.key === 'Escape') {
      e.preventDefault();
      if (open && entries.length > 0) setShut(text);
      else if (stop) stop();
      else field.current?.blur();
    } else if (
      (e.key === 'ArrowUp' && (text === '' || back >= 0)) ||
      (e.key === 'ArrowDown' && back >= 0)
    ) {
      const next = Math.max(-1, back + (e.key === 'ArrowUp' ? 1 : -1));
      const past = next < 0 ? '' : history()[next];
      if (past === undefined) return;
      e.preventDefault();
      setBack(next);
      place(past, past.length);
    }
  };

  const pasted = (e: ClipboardEvent) => {
    // Spreadsheet cells are pasted both as text and as an image; prefer the text.
    if (e.clipboardData.getData('text/plain')) return;
    for (const file of e.clipboardData.files) add(file);
    if (e.clipboardData.files.length > 0) e.preventDefault();
  };
  const add = (file: File) => {
    if (!/^image\/(png|jpeg|gif|webp)$/.test(file.type))
      return tell('Only PNG, JPEG, GIF and WebP pictures can be sent.', 'bad');
    if (file.size > 5 << 20) return tell('That picture is larger than 5 MB.', 'bad');
    const reader = new FileReader();
    reader.onload = () =>
      setPictures((all) =>
        all.length < 20 ? [...all, { name: file.name, url: String(reader.result) }] : all,
      );
    reader.readAsDataURL(file);
  };

  const typed = (sign: string) => () => {
    place(
      sign === '/' ? '/' : `${text}${text && !/\s$/.test(text) ? ' ' : ''}${sign}`,
      sign === '/' ? 1 : text.length + (text && !/\s$/.test(text) ? 2 : 1),
    );
    setShut(null);
    field.current?.focus();
  };

  return (
    <div className={styles.input}>
      {entries.length > 0 ? (
        <ul
          className={styles.menu}
          role="listbox"
          id="menu"
          aria-label={open?.sign === '@' ? 'Files' : 'Commands'}
        >
          {entries.map((entry, n) => (
            <li
              key={entry.put}
              role="option"
              id={`menu-${n}`}
              aria-selected={n === at}
              onMouseDown={(e) => {
                e.preventDefault();
                take(entry);
              }}
            >
              <b>{visible(entry.put.trim())}</b> <span>{visible(entry.about)}</span>
            </li>
          ))}
        </ul>
      ) : null}
      <textarea
        ref={field}
        id="composer"
        rows={1}
        value={text}
        placeholder={placeholder}
        aria-label="What to do next"
        dir="auto"
        readOnly={sending}
        aria-controls={entries.length > 0 ? 'menu' : undefined}
        aria-autocomplete="list"
        aria-haspopup="listbox"
        aria-activedescendant={entries.length > 0 ? `menu-${at}` : undefined}
        onChange={(e) => {
          setText(e.target.value);
          setCursor(e.target.selectionStart);
          setChosen(0);
          setShut(null);
          setBack(-1);
        }}
        onSelect={(e) => setCursor(e.currentTarget.selectionStart)}
        onKeyDown={pressed}
        onPaste={pasted}
        onDrop={(e) => {
          if (e.dataTransfer.files.length === 0) return;
          e.preventDefault();
          for (const file of e.dataTransfer.files) add(file);
        }}
      />
      {pictures.length > 0 ? (
        <div className={styles.pictures}>
          {pictures.map((p, n) => (
            <span key={n}>
              <img className={styles.picture} src={p.url} alt={p.name || 'pasted picture'} />
              <Button
                kind="quiet"
                aria-label={`Remove ${p.name || 'this picture'}`}
                onClick={() => setPictures((all) => all.filter((_, m) => m !== n))}
              >
                ×
              </Button>
            </span>
          ))}
        </div>
      ) : null}
      <div className={styles.bar}>
        <Button kind="chip" onClick={typed('@')}>
          @ file
        </Button>
        <Button kind="chip" onClick={typed('/')}>
          / command
        </Button>
        <span className="spacer" />
        {children}
        <Button
          kind="go"
          k="enter"
          className={styles.send}
          disabled={sending || (!text.trim() && pictures.length === 0)}
          onClick={() => void submit()}
        >
          {sending ? 'Sending' : 'Send'}
        </Button>
      </div>
    </div>
  );
}

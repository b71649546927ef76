/** A code block with a copy button, highlighted as soon as the tokens are ready. */

import { memo, useEffect, useState } from 'react';
import { copyText } from '../state/actions';
import { languageOf, tokens, type Token } from '../text/highlight';
import { visible } from '../text/safe';
import { Button } from './parts';
import styles from './Code.module.css';

/** The highlighted tokens, or null until they are ready. */
export function useTokens(code: string, lang: string | null, wanted = true): Token[][] | null {
  const [done, setDone] = useState<{ code: string; lines: Token[][] | null } | null>(null);
  useEffect(() => {
    if (!lang || !wanted) return;
    let gone = false;
    void tokens(code, lang).then((lines) => {
      if (!gone) setDone({ code, lines });
    });
    return () => {
      gone = true;
    };
  }, [code, lang, wanted]);
  return done?.code === code ? done.lines : null;
}

export function Line({ line, plain }: { line: Token[] | undefined; plain: string }) {
  if (!line) return <>{visible(plain)}</>;
  return (
    <>
      {line.map((t, n) =>
        t.kind ? (
          <span key={n} className={`tok-${t.kind}`}>
            {visible(t.text)}
          </span>
        ) : (
          visible(t.text)
        ),
      )}
    </>
  );
}

export const Code = memo(function Code({
  code,
  lang,
  live = false,
}: {
  code: string;
  lang: string;
  live?: boolean;
}) {
  const known = languageOf(lang);
  const lines = useTokens(code, known, !live);
  return (
    <figure className={styles.code}>
      <figcaption>
        <span>{visible(lang) || 'text'}</span>
        <Button kind="quiet" onClick={() => void copyText(code)} aria-label="Copy this code">
          Copy
        </Button>
      </figcaption>
      <pre tabIndex={0} aria-label={`Code${lang ? ` in ${visible(lang)}` : ''}`} role="region">
        <code>
          {lines
            ? lines.map((line, n) => (
                <span key={n}>
                  <Line line={line} plain="" />
                  {n < lines.length - 1 ? '\n' : ''}
                </span>
              ))
            : visible(code)}
        </code>
      </pre>
    </figure>
  );
});

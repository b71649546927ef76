/** The start page of a new conversation: folder, model and three prompts to try. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Effort, Mode } from '../proto.gen';
import * as api from '../net/api';
import { begin } from '../state/actions';
import { go } from '../state/store';
import { visible } from '../text/safe';
import { Composer, Dock, draftOf, Status } from './Composer';
import { Choices } from './Conversation';
import { Button, Fill, TopBar, Wrong } from './parts';
import { SetUp } from './SetUp';
import styles from './Start.module.css';

const TRY = [
  'What does this project do, and where should I start reading?',
  'Run the tests and explain what fails.',
  'Find an untested function and write a test for it.',
];

export function Start({ workspace }: { workspace?: string }) {
  const start = useQuery({
    queryKey: ['start', workspace],
    queryFn: () => api.start(workspace),
    staleTime: 10_000,
    retry: false,
  });
  const queries = useQueryClient();
  const [mode, setMode] = useState<string | null>(null);
  const [model, setModel] = useState<string | null>(null);
  const [effort, setEffort] = useState<Effort | null>(null);
  const [folder, setFolder] = useState('');
  const [first, setFirst] = useState(0);
  const here = start.data;
  const chosen = {
    ...(mode ? { mode: mode as Mode } : {}),
    ...(model ? { model } : {}),
    ...(effort ? { effort } : {}),
  };
  return (
    <main id="main">
      <TopBar>
        <h1>New session</h1>
      </TopBar>
      <Fill>
        <div className={styles.start}>
          <p data-testid="folder">
            {here ? (
              <>
                <b>{visible(here.folder)}</b>
                {here.branch ? ` · ${visible(here.branch)}` : ''} ·{' '}
                {here.isolation === 'D' ? 'no sandbox' : `sandbox ${here.isolation}`}
              </>
            ) : start.isError ? (
              ''
            ) : (
              'Loading'
            )}
          </p>
          {start.isError ? <Wrong>{start.error.message}</Wrong> : null}
          {here && !here.model ? (
            <>
              <SetUp done={() => void queries.invalidateQueries()} />
              {here.missing.map((line) => (
                <p className="faint" key={line}>
                  {visible(line)}
                </p>
              ))}
            </>
          ) : null}
          {here?.notes.map((note) => (
            <p className="faint" key={note}>
              {visible(note)}
            </p>
          ))}
          <h2>Try</h2>
          <ul className={styles.tries}>
            {TRY.map((words) => (
              <li key={words}>
                <button
                  type="button"
                  onClick={() => {
                    sessionStorage.setItem(draftOf(null, workspace), words);
                    setFirst((n) => n + 1);
                  }}
                >
                  {words}
                </button>
              </li>
            ))}
          </ul>
          <details>
            <summary>Another folder</summary>
            <form
              onSubmit={(e) => {
                e.preventDefault();
                go({ at: 'new', workspace: folder });
              }}
            >
              <input
                aria-label="Full path of a folder"
                list="folders"
                value={folder}
                onChange={(e) => setFolder(e.target.value)}
                placeholder="/home/you/project"
              />
              <datalist id="folders">
                {here?.folders.map((f) => (
                  <option key={f} value={f}>
                    {visible(f)}
                  </option>
                ))}
              </datalist>
              <Button type="submit">Use this folder</Button>
            </form>
          </details>
        </div>
      </Fill>
      <Dock>
        <Composer
          key={`${workspace ?? ''}${first}`}
          session={null}
          workspace={workspace}
          own={here?.commands ?? []}
          placeholder="What would you like to do?"
          autoFocus
          send={(text, pictures) => begin(text, pictures, { workspace, set: chosen })}
        >
          <Choices
            mode={mode ?? here?.mode ?? 'auto'}
            model={model ?? here?.model ?? ''}
            effort={effort ?? here?.effort ?? null}
            setMode={setMode}
            setModel={setModel}
            setEffort={setEffort}
          />
        </Composer>
        <Status>
          <span>
            Steps are saved. Most file changes can be undone. The approval mode decides when you are
            asked.
          </span>
        </Status>
      </Dock>
    </main>
  );
}

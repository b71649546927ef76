/**
 * Setting up a model: provider, key, model. The key stays in this component until it is sent, and is
 * sent only to the server of this page.
 */

import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState, type FormEvent } from 'react';
import type { ProviderRow } from '../api.gen';
import * as api from '../net/api';
import { visible } from '../text/safe';
import { Button, Wrong } from './parts';
import styles from './SetUp.module.css';

export function SetUp({ done }: { done: () => void }) {
  const list = useQuery({
    queryKey: ['providers'],
    queryFn: api.providers,
    staleTime: 5_000,
    retry: false,
  });
  const [provider, setProvider] = useState<ProviderRow | null>(null);
  const [key, setKey] = useState('');
  const [models, setModels] = useState<string[] | null>(null);
  const [model, setModel] = useState('');
  const [busy, setBusy] = useState('');
  const [wrong, setWrong] = useState('');
  const running = useRef<AbortController | null>(null);

  const stop = () => {
    running.current?.abort();
    running.current = null;
    setBusy('');
  };
  useEffect(() => () => running.current?.abort(), []);

  /** Runs a request. Its answer counts only if nobody went back or left meanwhile. */
  const run = async <T,>(
    words: string,
    ask: (signal: AbortSignal) => Promise<T>,
    then: (answer: T) => void,
  ) => {
    stop();
    const own = new AbortController();
    running.current = own;
    setBusy(words);
    setWrong('');
    try {
      const answer = await ask(own.signal);
      if (!own.signal.aborted) then(answer);
    } catch (error) {
      if (!own.signal.aborted) setWrong(error instanceof Error ? error.message : String(error));
    } finally {
      if (running.current === own) stop();
    }
  };

  const find = (from: ProviderRow, typed: string) =>
    run(
      `Waiting for the models of ${from.address}`,
      (signal) => api.providerModels({ provider: from.name, key: typed || null }, signal),
      (answer) => {
        if (answer.error) return fail(from, answer.error);
        setModels(answer.models);
        setModel(answer.models[0] ?? '');
      },
    );

  const fail = (from: ProviderRow, fault: { error: string; needs_key: boolean }) => {
    setWrong(fault.error);
    if (!fault.needs_key) return;
    setKey('');
    setModels(null);
    // A variable is used in place of a saved key, so another key would not help.
    if (from.key === 'variable') setProvider(null);
  };

  /** Whether a key can be typed for it here. */
  const asks = (row: ProviderRow) =>
    !!list.data?.accepts_keys && (row.key === 'missing' || row.key === 'saved');

  const choose = (row: ProviderRow) => {
    setProvider(row);
    setWrong('');
    if (row.key !== 'missing' && !asks(row)) void find(row, '');
  };

  const use = (from: ProviderRow) =>
    run(
      `Trying ${from.name}/${model} with one short request`,
      (signal) => api.chooseModel({ provider: from.name, key: key || null, model }, signal),
      (answer) => {
        if (answer.error) return fail(from, answer.error);
        setKey('');
        done();
      },
    );

  const back = () => {
    stop();
    setWrong('');
    if (models && provider && asks(provider)) return setModels(null);
    setModels(null);
    setKey('');
    setProvider(null);
  };

  const submit = (e: FormEvent) => {
    e.preventDefault();
    if (!provider || busy) return;
    void (models ? use(provider) : find(provider, key));
  };

  const asksKey = provider && asks(provider);
  return (
    <section className={styles.setUp} aria-labelledby="set-up">
      <h2 id="set-up">Set up a model</h2>
      {provider ? (
        <form className={styles.form} onSubmit={submit}>
          <p>
            <b>{visible(provider.name)}</b>{' '}
            <span className="faint">{visible(provider.address)}</span>
          </p>
          {wrong ? <Wrong>{wrong}</Wrong> : null}
          {models ? (
            <label>
              Model
              <select value={model} onChange={(e) => setModel(e.target.value)} disabled={!!busy}>
                {models.map((name) => (
                  <option key={name} value={name}>
                    {visible(name)}
                  </option>
                ))}
              </select>
            </label>
          ) : asksKey ? (
            <Key provider={provider} value={key} change={setKey} disabled={!!busy} />
          ) : provider.key === 'missing' ? (
            <Elsewhere name={provider.name} />
          ) : null}
          <p className={styles.busy} role="status">
            {busy ? `${visible(busy)} …` : ''}
          </p>
          <div className={styles.buttons}>
            {models ? (
              <Button type="submit" kind="go" disabled={!!busy || !model}>
                Use this model
              </Button>
            ) : asksKey ? (
              <Button
                type="submit"
                kind="go"
                disabled={!!busy || (!key && provider.key === 'missing')}
              >
                {key || provider.key === 'missing' ? 'Check the key' : 'Use the saved key'}
              </Button>
            ) : provider.key !== 'missing' && !busy ? (
              <Button type="submit" kind="go">
                Try again
              </Button>
            ) : null}
            <Button onClick={back}>{busy ? 'Cancel' : 'Back'}</Button>
          </div>
        </form>
      ) : (
        <>
          <p className="faint">
            Dunnock works with API keys and with local servers. There is no sign-in with a
            subscription.
          </p>
          {wrong ? <Wrong>{wrong}</Wrong> : null}
          {list.isError ? <Wrong>{list.error.message}</Wrong> : null}
          {list.isPending ? <p role="status">Looking for local servers …</p> : null}
          <ul className={styles.providers}>
            {list.data?.providers.map((row) => (
              <li key={row.name}>
                <button type="button" onClick={() => choose(row)}>
                  <b>{visible(row.name)}</b> <span>{visible(row.about)}</span>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function Key(props: {
  provider: ProviderRow;
  value: string;
  change: (value: string) => void;
  disabled: boolean;
}) {
  const { provider, value, change, disabled } = props;
  return (
    <>
      <label>
        API key
        <input
          type="password"
          name="api-key"
          autoComplete="off"
          spellCheck={false}
          // eslint-disable-next-line jsx-a11y/no-autofocus
          autoFocus
          value={value}
          onChange={(e) => change(e.target.value)}
          disabled={disabled}
        />
      </label>
      <p className="faint">
        It is sent only to {visible(provider.address)} and saved in a file that only you can read.
        The model's tools and sandboxed commands cannot read it.
      </p>
      {provider.warning ? <p className={styles.warning}>{visible(provider.warning)}</p> : null}
    </>
  );
}

/** A page on another machine must not send a key: the connection is not encrypted. */
const Elsewhere = ({ name }: { name: string }) => (
  <>
    <p>
      A key cannot be entered here, because the connection to this page is not encrypted. On the
      machine on which Dunnock runs, enter:
    </p>
    <pre className={styles.command} tabIndex={0} role="region" aria-label="Command">
      dunnock login {visible(name)}
    </pre>
  </>
);

/** The sign-in page. */

import { useState, type FormEvent } from 'react';
import * as api from '../net/api';
import { signedIn } from '../state/open';
import { useStore } from '../state/store';
import { Alone, Bird, Button, Wrong } from './parts';
import styles from './Login.module.css';

export function Login() {
  const why = useStore((s) => s.why);
  const [password, setPassword] = useState('');
  const [wrong, setWrong] = useState('');
  const signIn = async (e: FormEvent) => {
    e.preventDefault();
    try {
      await api.login({ password });
      signedIn();
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <Alone>
      <h1>
        <Bird />
        Dunnock
      </h1>
      {why ? <Wrong>{why}</Wrong> : null}
      <p>You are not signed in. In a terminal, run:</p>
      <pre className={styles.command} tabIndex={0} role="region" aria-label="Command">
        dunnock web
      </pre>
      <p>
        It opens a page that is signed in; this one then signs in too. If it is already running,
        press Enter in its terminal.
      </p>
      <details>
        <summary>From another machine</summary>
        <form className={styles.password} onSubmit={(e) => void signIn(e)}>
          <label>
            Server password{' '}
            <input
              type="password"
              autoComplete="current-password"
              value={password}
              onChange={(e) => setPassword(e.target.value)}
            />
          </label>
          <Button type="submit" kind="go" disabled={!password}>
            Sign in
          </Button>
        </form>
        {wrong ? <Wrong>{wrong}</Wrong> : null}
      </details>
    </Alone>
  );
}

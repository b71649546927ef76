/** The sign-in page. */

import { useState, type FormEvent } from 'react';
import * as api from '../net/api';
import { enter } from '../state/open';
import { useStore } from '../state/store';
import { Wrong } from './parts';

export function Login() {
  const why = useStore((s) => s.why);
  const [password, setPassword] = useState('');
  const [wrong, setWrong] = useState('');
  const come = async (e: FormEvent) => {
    e.preventDefault();
    try {
      await api.login({ password });
      enter();
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <main className="door" id="main">
      <h1><span className="bird" aria-hidden="true" />Dunnock</h1>
      {why ? <Wrong>{why}</Wrong> : null}
      <p>This page does not know you yet. In a terminal:</p>
      <pre tabIndex={0} role="region" aria-label="Command">dunnock web</pre>
      <p>It opens a page that does; this one joins it by itself. If one runs already, press Enter there.</p>
      <details>
        <summary>From another machine</summary>
        <form onSubmit={(e) => void come(e)}>
          <label>Password of the server <input type="password" autoComplete="current-password" value={password} onChange={(e) => setPassword(e.target.value)} /></label>
          <button type="submit" className="btn go" disabled={!password}>Come in</button>
        </form>
        {wrong ? <Wrong>{wrong}</Wrong> : null}
      </details>
    </main>
  );
}

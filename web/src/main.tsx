/** Entry point: signs the page in and renders the app. */

import './ui/global.css'; // first: the modules of the components win over it
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import * as api from './net/api';
import { follow, signedIn, signedOut } from './state/open';
import { get, readRoute, set } from './state/store';
import { warm } from './text/markdown';
import { App } from './ui/App';

/** The one-time code from the address. It is removed from the address before anything else. */
function code(): string | null {
  const found = /^#code=([0-9a-f]+)$/.exec(location.hash);
  if (found) history.replaceState(null, '', `${location.pathname}#/`);
  return found?.[1] ?? null;
}

async function signIn() {
  const once = code();
  try {
    // A code that was already used is not an error if this page is signed in.
    if (once)
      await api
        .login({ code: once })
        .catch((error: unknown) => api.me().catch(() => Promise.reject(error)));
    else await api.me();
    set({ route: readRoute() });
    signedIn();
    warm();
  } catch (error) {
    if (error instanceof api.Failed && error.status === 0) setTimeout(() => void signIn(), 1000);
    else signedOut(once && error instanceof Error ? error.message : '');
  }
}

api.onRefused(() => {
  if (get().auth === 'signed-in')
    signedOut('The server was restarted, so this page has to sign in again.');
});
api.token.watch(() => {
  if (get().auth === 'signed-out') void signIn();
});
window.addEventListener('hashchange', () => {
  // An address with a code was opened in an existing tab.
  if (location.hash.startsWith('#code=')) return void signIn();
  const next = readRoute();
  set((s) => ({
    route: next,
    drawer: null,
    dialog: null,
    walking: s.walking && next.at === 'session',
  }));
  follow();
});

const root = document.getElementById('app');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider
        client={
          new QueryClient({
            defaultOptions: {
              queries: { refetchOnWindowFocus: false, retry: 1, networkMode: 'always' },
            },
          })
        }
      >
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );
  void signIn();
}

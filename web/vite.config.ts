import { readFileSync, readdirSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';
import { cssModules } from './css-names.ts';

/** The parts of the app are kept compressed: smaller in the binary, and nothing to do when they are asked for. */
const packed: Plugin = {
  name: 'packed',
  apply: 'build',
  closeBundle(error?: Error) {
    if (error) return; // the build has failed, and says why
    const folder = join(import.meta.dirname, 'dist/assets');
    for (const name of readdirSync(folder).filter((n) => /\.(js|css)$/.test(n))) {
      const path = join(folder, name);
      writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
      unlinkSync(path);
    }
  },
};

export default defineConfig({
  css: { modules: cssModules },
  worker: { format: 'es' },
  plugins: [react(), packed],
  build: {
    target: 'es2023',
    assetsInlineLimit: 0, // the page's policy lets nothing be inline
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
    emptyOutDir: true,
  },
  server: {
    // For work on the app itself: `dunnock serve --port 5000` beside it.
    proxy: { '/api': { target: 'http://127.0.0.1:5000', ws: true } },
  },
});

import { defineConfig } from 'vitest/config';
import { cssModules } from './css-names.ts';

export default defineConfig({
  test: {
    projects: [
      {
        css: { modules: cssModules },
        test: {
          name: 'unit',
          include: ['test/**/*.test.{ts,tsx}'],
          environment: 'happy-dom',
          // Only a hang fails on wall time: the slowest test takes 2 s.
          testTimeout: 60_000,
          css: { include: /\.module\.css$/, modules: { classNameStrategy: 'scoped' } },
        },
      },
      {
        test: {
          name: 'browser',
          include: ['e2e/**/*.test.ts'],
          environment: 'node',
          testTimeout: 300_000,
          hookTimeout: 300_000,
          fileParallelism: false,
          sequence: { concurrent: false },
        },
      },
    ],
  },
});

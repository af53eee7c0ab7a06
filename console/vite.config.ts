import { join } from 'node:path'
import { defineConfig } from 'vite'

/** Where every file of the pages but the pages themselves is served; `onceonly/pages` knows the same address. */
const base = '/console/'

export default defineConfig({
  root: import.meta.dirname,
  base,
  logLevel: 'warn',
  // Inside the repository `onceonly` means the sources, here as everywhere.
  resolve: { conditions: ['onceonly-source', 'module', 'browser'] },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2023',
    emptyOutDir: true,
    // The policy of the pages lets nothing run that is not a file of ours.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      input: {
        console: join(import.meta.dirname, 'console.html'),
        chat: join(import.meta.dirname, 'chat.html'),
        home: join(import.meta.dirname, 'home.html'),
      },
    },
  },
  // `npx vite console` serves the pages as they are written, beside a server that was started with `npm start`.
  server: {
    proxy: { '/api': 'http://127.0.0.1:4000', '/chat/': { target: 'http://127.0.0.1:4000', ws: true } },
  },
})

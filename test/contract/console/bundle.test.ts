import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'

/** No file is made of it: the plugin below answers for it. */
const entry = join(import.meta.dirname, 'bundled-program.js')

/** Bundles a program for browsers, as their users do, and answers its size after compression. */
async function compressedBytes(program: string): Promise<number> {
  const outputs = await build({
    configFile: false,
    logLevel: 'error',
    root: import.meta.dirname,
    resolve: { conditions: ['onceonly-source', 'module', 'browser'] },
    plugins: [
      {
        name: 'entry',
        enforce: 'pre',
        resolveId: (id) => (id === entry ? id : undefined),
        load: (id) => (id === entry ? program : undefined),
      },
      {
        // What is left of Node would fail in a browser, and only there.
        name: 'no-node',
        enforce: 'pre',
        resolveId(id, importer) {
          if (id.startsWith('node:')) throw new Error(`${importer} imports ${id}`)
        },
      },
    ],
    build: { write: false, minify: true, lib: { entry, formats: ['es'], fileName: 'bundle' } },
  })
  const all = Array.isArray(outputs) ? outputs : [outputs]
  const code = all.flatMap((each) => ('output' in each ? each.output : []))
  return gzipSync(code.map((chunk) => (chunk.type === 'chunk' ? chunk.code : '')).join('')).length
}

/** In KiB. About half of the small ones is the table of errors, which says what to do next in full sentences. */
const bounds = [
  [
    'the small parts',
    `export { IdempotentSender, ReceiveDedup, SequencedStream, VectorClock } from 'onceonly/stream'`,
    5,
  ],
  ['the client of streams', `export { createStreamClient, createWebSocketTransport } from 'onceonly/stream'`, 13],
  ['everything of streams', `export * from 'onceonly/stream'`, 18],
  ['the HTTP client', `export { createClient } from 'onceonly/client'`, 5],
] as const

for (const [what, program, mostKiB] of bounds) {
  test(`${what} in a browser: nothing of Node, at most ${mostKiB} KiB`, async (t) => {
    const bytes = await compressedBytes(program)
    t.diagnostic(`${bytes} bytes`)
    assert.ok(bytes > 200, 'something was bundled')
    assert.ok(bytes <= mostKiB * 1024, `${bytes} bytes`)
  })
}

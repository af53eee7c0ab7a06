import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Plugin } from 'vite'
import { bundle } from '../../support/bundle.ts'

/** What is left of Node would fail in a browser, and only there. */
const noNode: Plugin = {
  name: 'no-node',
  enforce: 'pre',
  resolveId(id, importer) {
    if (id.startsWith('node:')) throw new Error(`${importer} imports ${id}`)
  },
}

async function compressedBytes(program: string): Promise<number> {
  return gzipSync(await bundle(program, { plugins: [noNode], minify: true })).length
}

/** In KiB. About half of the small ones is the table of errors, which says what to do next in full sentences. */
const bounds = [
  [
    'the small parts',
    `export { IdempotentSender, ReceiveDedup, SequencedStream, VectorClock } from 'onceonly/stream/parts'`,
    5,
  ],
  ['the client of streams', `export { createStreamClient, createWebSocketTransport } from 'onceonly/stream'`, 13],
  [
    'everything of streams',
    `export * from 'onceonly/stream'
     export * from 'onceonly/stream/parts'
     export * from 'onceonly/stream/protocol'`,
    18,
  ],
  ['the errors', `export { isOnceError } from 'onceonly/errors'`, 5],
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

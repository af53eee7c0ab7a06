import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Plugin } from 'vite'
import { bundle } from './bundle.ts'

/** What is left of Node would fail in a browser, and only there. */
const noNode: Plugin = {
  name: 'no-node',
  enforce: 'pre',
  resolveId(id, importer) {
    if (id.startsWith('node:')) throw new Error(`${importer} imports ${id}`)
  },
}

/** Bytes, compressed by gzip; a KB is 1000 of them. */
const bounds = [
  [
    'the small parts',
    `export { IdempotentSender, ReceiveDedup, SequencedStream, VectorClock } from 'onceonly/stream/parts'`,
    5_000,
  ],
  ['the client of streams', `export { createStreamClient, createWebSocketTransport } from 'onceonly/stream'`, 13_000],
  [
    'everything of streams',
    `export * from 'onceonly/stream'
     export * from 'onceonly/stream/parts'
     export * from 'onceonly/stream/protocol'`,
    19_456,
  ],
  ['the errors', `export { isOnceError } from 'onceonly/errors'`, 1_000],
  ['the HTTP client', `export { createClient } from 'onceonly/client'`, 5_000],
] as const

/** @param project that has the package installed; without it the sources are measured */
export function testBrowserParts(project?: string): void {
  for (const [what, program, most] of bounds) {
    test(`${what} in a browser: nothing of Node, at most ${most} bytes`, async (t) => {
      const plugins = [noNode]
      const bundled = await bundle(program, { plugins, minify: true, ...(project !== undefined && { project }) })
      const { length } = gzipSync(bundled)
      t.diagnostic(`${length} bytes`)
      assert.ok(length > 200, 'something was bundled')
      assert.ok(length <= most, `${length} bytes`)
    })
  }
}

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../../..')
const LONGEST_MS = 240_000

/** What the README leaves to its reader. */
const before = (folder: string) => `
process.chdir(${JSON.stringify(folder)})
import Fastify from 'fastify'
const server = Fastify()
const order = { cents: 100 }
const captures = []
const bank = { capture: async (what, { idempotencyKey }) => ({ id: captures.push([what, idempotencyKey]) }) }
const [tenant, caller, key] = ['acme', 'ann', 'k']
const command = { caseId: 'CASE-1', queue: 'LEGAL' }
const sent = []
const deliver = async ({ text }) => \`m-\${sent.push(text)}\`
`

/** Everything is asked for twice, and happens once. */
const after = `
import assert from 'node:assert/strict'
const ask = async (path, body, headers = {}) => {
  const json = { 'content-type': 'application/json', from: 'ann' }
  const { statusCode, body: text, headers: received } = await server.inject({ method: 'POST', url: path, body, headers: { ...json, ...headers } })
  return [statusCode, JSON.parse(text), received['idempotent-replayed'] ?? null]
}
assert.equal(captures.length, 1)
const keyed = { 'idempotency-key': 'k1' }
assert.deepEqual(await ask('/payments', { cents: 1 }, keyed), [201, { id: 2 }, null])
assert.deepEqual(await ask('/payments', { cents: 1 }, keyed), [201, { id: 2 }, 'true'])
assert.equal((await ask('/payments', { cents: 2 }, keyed))[0], 409)
assert.equal((await ask('/payments', { cents: 1 }))[0], 400)
assert.equal(captures.length, 2)
const hello = { to: '+4915112345678', text: 'Hello' }
assert.deepEqual(await ask('/messages', hello), [201, { id: 'm-1' }, null])
assert.deepEqual(await ask('/messages', hello), [201, { id: 'm-1' }, 'true'])
assert.equal(sent.length, 1)
await server.close()
await once.stop()
console.log('done')
`

test('the code of the README runs, and does what it says', async () => {
  const text = readFileSync(join(root, 'README.md'), 'utf8')
  const blocks = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code ?? '')
  assert.equal(blocks.length, 4)
  const [ledger = '', transaction = '', ...routes] = blocks
  // The table of the second block is the reader's own.
  const table = "await store.sql.query('create table escalations (case_id text, queue text)')\n"
  const named = ledger.replace('createLedger({ store: ', 'createLedger({ store: globalThis.store = ').concat(table)
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-readme-'))
  try {
    const program = [before(folder), named, transaction, ...routes, after].join('\n')
    const args = ['--conditions=onceonly-source', '--input-type=module-typescript', '--eval', program]
    const { stdout } = await run(process.execPath, args, { cwd: root, timeout: LONGEST_MS })
    assert.equal(stdout.trim(), 'done')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

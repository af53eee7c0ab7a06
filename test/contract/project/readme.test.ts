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
const order = { cents: 100 }
const captures = []
const bank = { capture: async (what, { idempotencyKey }) => ({ id: captures.push([what, idempotencyKey]) }) }
`

/** Everything is asked for twice, and happens once. */
const after = `
import assert from 'node:assert/strict'
import { once as happened } from 'node:events'
if (!server.listening) await happened(server, 'listening')
const ask = async (item, headers) => {
  const response = await fetch('http://127.0.0.1:' + server.address().port + '/orders', {
    method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify({ item }),
  })
  return [response.status, await response.json(), response.headers.get('idempotent-replayed')]
}
const keyed = { 'idempotency-key': 'k1', 'x-user': 'ann' }
const [first, twin] = await Promise.all([ask('a book', keyed), ask('a book', keyed)])
assert.deepEqual([first.slice(0, 2), twin.slice(0, 2)], [[201, { id: 1 }], [201, { id: 1 }]])
assert.deepEqual(await ask('a book', keyed), [201, { id: 1 }, 'true'])
assert.equal((await ask('a boat', keyed))[0], 409)
assert.equal((await ask('a book', {}))[0], 400)
assert.deepEqual(await ask('a book', { ...keyed, 'x-user': 'bob' }), [201, { id: 2 }, null])
assert.deepEqual(await capture.run({ tenant: 'acme', caller: 'shop', key: 'order-1001' }, order, () => assert.fail()), receipt)
assert.equal(captures.length, 1)
server.close()
server.closeAllConnections()
await once.stop()
console.log('done')
`

const text = readFileSync(join(root, 'README.md'), 'utf8')

test('the code of the README runs, and does what it says', async () => {
  const blocks = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code ?? '')
  assert.equal(blocks.length, 2)
  const [route = '', external = ''] = blocks
  assert.ok(route.includes('app.listen(3000)'))
  const named = route.replace('app.listen(3000)', "const server = app.listen(0, '127.0.0.1')")
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-readme-'))
  try {
    const program = [before(folder), named, external, after].join('\n')
    const args = ['--conditions=onceonly-source', '--input-type=module-typescript', '--eval', program]
    const { stdout } = await run(process.execPath, args, { cwd: root, timeout: LONGEST_MS })
    assert.equal(stdout.trim(), 'done')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the README is read in two minutes', () => {
  const words = text.split(/\s+/).length
  assert.ok(words < 700, `${words} words`)
  const [, route = ''] = /^```ts\n(.*?)^```$/ms.exec(text) ?? []
  const lines = route.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('import '))
  assert.ok(lines.length <= 10, `${lines.length} lines`)
})

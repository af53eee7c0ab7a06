import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const LONGEST_MS = 240_000

export const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')

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

/** Runs the code of the README with the packages that `cwd` finds, and answers what it prints: `done`. */
export async function runReadme(cwd: string, flags: readonly string[] = []): Promise<string> {
  const [route = '', external = '', ...others] = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code)
  if (others.length > 0) throw new Error(`The README has ${others.length} blocks that are not run.`)
  const named = route.replace('app.listen(3000)', "const server = app.listen(0, '127.0.0.1')")
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-readme-'))
  try {
    const program = [before(folder), named, external, after].join('\n')
    const args = [...flags, '--input-type=module-typescript', '--eval', program]
    const { stdout } = await run(process.execPath, args, { cwd, timeout: LONGEST_MS })
    return stdout.trim()
  } finally {
    rmSync(folder, { recursive: true })
  }
}

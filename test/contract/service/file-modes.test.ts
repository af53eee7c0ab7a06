import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { start } from '../../support/service/service.ts'

const demoKey = 'demo-key-of-tests'
const operatorToken = 'operator-token-of-tests'

async function started(t: TestContext, data: string, remove = data): Promise<string> {
  const before = process.umask(0o022)
  const child = start({ ONCEONLY_DATA: data, ONCEONLY_OPERATOR_TOKEN: operatorToken })
  process.umask(before)
  t.after(async () => {
    child.kill('SIGTERM')
    if (child.exitCode === null) await once(child, 'exit')
    await rm(remove, { recursive: true, force: true })
  })
  assert.ok(child.stdout)
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /http:\/\/\S+/.exec(line)?.[0]
    if (url !== undefined) {
      child.stdout.resume()
      return url
    }
  }
  throw new Error('The server ended before it listened')
}

async function upload(url: string): Promise<void> {
  const headers = { authorization: `Bearer ${demoKey}`, 'idempotency-key': 'modes-1' }
  const body = JSON.stringify({ projectId: 'p-1', searchName: 'Modes', files: ['one.ris'] })
  const made = await fetch(`${url}/api/imports`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  })
  const { searchId } = (await made.json()) as { searchId: string }
  const sent = await fetch(`${url}/api/imports/${searchId}/files/one.ris`, {
    method: 'PUT',
    headers: { authorization: headers.authorization, 'content-type': 'text/plain' },
    body: 'TY  - JOUR\nTI  - One\nER  - \n',
  })
  assert.ok(sent.ok, `${sent.status} ${await sent.text()}`)
}

test('what a server keeps is for its owner alone, under the usual umask', async (t) => {
  const base = await mkdtemp(join(tmpdir(), 'onceonly-modes-'))
  const data = join(base, 'new', 'data')
  const url = await started(t, data, base)
  await upload(url)
  const modes = new Map<string, string>()
  for (const name of ['.', ...(await readdir(data, { recursive: true }))]) {
    const found = await stat(join(data, name)).catch(() => null)
    if (found !== null)
      modes.set(name, `${found.isDirectory() ? 'folder' : 'file'} ${(found.mode & 0o777).toString(8)}`)
  }
  for (const name of ['onceonly.db', 'onceonly.db-wal', 'onceonly.db-shm', 'hook-secret', 'uploads']) {
    assert.ok(modes.has(name), `${name} is not there`)
  }
  const open = [...modes].filter(([, mode]) => mode !== 'folder 700' && mode !== 'file 600')
  assert.deepEqual(open, [])
})

test('a folder of another user stays as it is, and doctor warns of it', async (t) => {
  const data = await mkdtemp(join(tmpdir(), 'onceonly-modes-'))
  await chmod(data, 0o755)
  const url = await started(t, data)
  assert.equal((await stat(data)).mode & 0o777, 0o755)
  const findings = async () => {
    const headers = { authorization: `Bearer ${operatorToken}` }
    const response = await fetch(`${url}/api/console/doctor`, { headers })
    const all = ((await response.json()) as { findings: readonly Record<string, unknown>[] }).findings
    return Object.fromEntries(all.map(({ name, verdict }) => [name, verdict]))
  }
  assert.deepEqual(pick(await findings()), { access: 'ok', 'data folder': 'warning' })
  await chmod(data, 0o700)
  await chmod(join(data, 'onceonly.db'), 0o644)
  assert.deepEqual(pick(await findings()), { access: 'warning', 'data folder': 'ok' })
})

const pick = (all: Readonly<Record<string, unknown>>) => ({ access: all['access'], 'data folder': all['data folder'] })

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLedger, MINUTE } from 'onceonly'
import { createProtect } from 'onceonly/node'
import { sqliteStore } from 'onceonly/sqlite'

const KEYS = 500
const CALL = { timeoutMs: 10_000 }

test('keys that were answered 401 are forgotten within half an hour, and no earlier than a late copy can come', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-released-'))
  const store = sqliteStore(join(folder, 'onceonly.db'), { testClock: true })
  const ledger = createLedger({ store, background: false })
  const protect = createProtect({ ledger, who: () => ({ tenant: 't', caller: 'c' }) })
  const listener = protect({ name: 'pay', effect: 'external' }, (_request, response) =>
    response.writeHead(401).end('who are you?'),
  )
  const server = createServer((request, response) => void listener(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    server.close()
    await ledger.stop()
    await store.stop()
    await rm(folder, { recursive: true })
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const pay = async (key: string) => {
    const answer = await fetch(url, { method: 'POST', headers: { 'idempotency-key': key }, body: '{}' })
    await answer.text()
    return answer.status
  }
  const statuses = await Promise.all(Array.from({ length: KEYS }, (_, n) => pay(`key-${n}`)))
  assert.deepEqual(new Set(statuses), new Set([401]))
  const rows = async () => {
    const [row] = await store.sql.query<{ n: number }>('select count(*) as n from onceonly_records')
    return row?.n
  }
  await store.clock.advance(25 * MINUTE, CALL)
  await ledger.upkeep.sweep()
  assert.equal(await rows(), KEYS)
  // A retry within that time is one more attempt at the same command.
  assert.equal(await pay('key-0'), 401)
  await store.clock.advance(6 * MINUTE, CALL)
  await ledger.upkeep.sweep()
  assert.equal(await rows(), 1)
  await store.clock.advance(30 * MINUTE, CALL)
  await ledger.upkeep.sweep()
  assert.equal(await rows(), 0)
})

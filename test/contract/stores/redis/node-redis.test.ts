import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient, createCluster } from '@redis/client'
import { createLedger } from 'onceonly'
import { redisStore } from 'onceonly/redis'
import { until } from '../../../../src/testing/until.ts'
import { startOwn } from '../../../support/own-server.ts'
import { pause, resume } from '../../../support/pause.ts'
import { passKit } from '../../../support/stores/redis/kit.ts'

test('the kit passes through `redis`; a server that is away, paused or restarted affects no other store', async (t) => {
  const servers = await startOwn('redis')
  t.after(() => servers.stop())
  const [server] = servers.started
  if (server === undefined) return t.skip('there is no Redis server')
  // Settings of its own commands are not the store's.
  const client = createClient({ url: server.url }).withTypeMapping({ 36: Buffer })
  await passKit(client, 'node-redis')

  const store = redisStore(client)
  const ledger = createLedger({ store, background: false })
  t.after(async () => {
    await ledger.stop()
    await store.stop()
  })
  assert.match(String((await store.durability({ timeoutMs: 60_000 })).fsync), /^(always|everysec|no)$/)
  let effects = 0
  const charge = ledger.operation<null>({ name: 'charge', effect: 'external' })
  const run = (key: string) => charge.run({ tenant: 'acme', caller: 'ann', key }, null, async () => ++effects)
  assert.equal(await run('one'), 1)
  const refused = (key: string) => assert.rejects(run(key), { code: 'store_unavailable' })
  const backAgain = (key: string, value: number) =>
    until(
      `the server is back for key ${key}`,
      () => run(key).catch(() => null),
      (seen) => seen === value,
    )

  await server.halt()
  await refused('two')
  await server.revive()
  await backAgain('two', 2)
  await pause(server.pid)
  await refused('three')
  resume(server.pid)
  await backAgain('three', 3)
  assert.equal(await run('two'), 2, 'and replayed')
  assert.equal(effects, 3)
})

test('a client that the store cannot use is refused by name, before anything is sent', () => {
  const cluster = createCluster({ rootNodes: [] })
  const given = (client: unknown) => () => redisStore(client as never)
  assert.throws(given(cluster), { code: 'bad_option', message: /`Cluster` of `ioredis`/ })
  assert.throws(given({}), { code: 'bad_option', message: /`createClient\(\)` of `redis`, version 5/ })
})

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { startOwn } from '../../support/own-server.ts'
import { createPlace, onPlace, skipOf } from '../../support/place.ts'
import { runChain } from './chain.ts'

const SIZE = { searches: 40, files: 3, replicas: 2, kills: 1 } as const

onPlace(
  'sqlite',
  'outbox, relay, local bus, saga and ordered inbox, with a killed replica: everything once and in order',
  async (place) => {
    const { killed } = await runChain(place, { ...SIZE, broker: { kind: 'local' }, restart: null })
    assert.equal(killed, 1)
  },
)

for (const kind of ['rabbitmq', 'nats'] as const) {
  const title = `the same over ${kind}, which is restarted in the middle, on PostgreSQL`
  test(title, { skip: skipOf('postgres') }, async (t) => {
    const servers = await startOwn(kind)
    const [server] = servers.started
    const place = await createPlace('postgres')
    try {
      if (server === undefined) return t.skip(`there is no server of the kind ${kind}`)
      const broker = { kind, url: server.url, namespace: `test-${randomBytes(6).toString('hex')}` } as const
      const restart = async () => {
        await server.halt()
        await server.revive()
      }
      const { killed, restarted } = await runChain(place, { ...SIZE, broker, restart })
      assert.deepEqual([killed, restarted], [1, true])
    } finally {
      await place.end()
      await servers.stop()
    }
  })
}

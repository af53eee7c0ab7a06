import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLedger } from 'onceonly'
import type { Subscriber } from 'onceonly/inbox'
import type { Config } from '../../../../service/config.ts'
import { createEvents } from '../../../../service/events/events.ts'
import type { Log } from '../../../../service/logs.ts'
import { openBase } from '../../../../service/store.ts'
import { until } from '../../../../src/testing/until.ts'

const TRANSACTION = { timeoutMs: 20_000, lockMs: 10_000, refuseTwinOf: null }

for (const [name, consume] of [
  ['cannot subscribe', () => Promise.reject(new Error('ACCESS_REFUSED'))],
  ['never comes to an end with it', () => new Promise<never>(() => {})],
] as const) {
  test(`a consumer that ${name} keeps neither the others nor the relay from their work`, async () => {
    const dataFolder = await mkdtemp(join(tmpdir(), 'onceonly-events-'))
    const config = { storeUrl: null, dataFolder, testClock: false, brokerUrl: null } as Config
    const base = openBase(config, null)
    const warned: unknown[] = []
    const log = { warn: (line: unknown) => void warned.push(line) } as unknown as Log
    const once = createLedger({ store: base.store, background: false })
    const events = createEvents({ config, base, once, log, watch: { relay: () => {} } })
    try {
      await events.outbox.prepare()
      const taken: string[] = []
      const good = {
        consume: (subscriber: Subscriber) =>
          subscriber.subscribe({ consumer: 'good', topics: ['news'], concurrency: 1 }, async ({ body }) => {
            taken.push(body)
            return { kind: 'done' }
          }),
      }
      await base.store.transactions.run(
        ({ tx }) => events.outbox.add(tx, { topic: 'news', body: 'hello' }),
        TRANSACTION,
      )
      events.begin([{ consume }, good])
      await until('the news has come', () => taken.length > 0)
      assert.deepEqual(taken, ['"hello"'])
      if (name === 'cannot subscribe') assert.match(JSON.stringify(warned[0]), /broker\.failed/)
    } finally {
      events.hold()
      await once.stop()
      await events.stop()
      await base.stop()
      await rm(dataFolder, { recursive: true, force: true })
    }
  })
}

import assert from 'node:assert/strict'
import type { OutboxMessage, SqlStore } from 'onceonly'
import { createOutbox } from 'onceonly/outbox'
import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import { until } from '../../../../src/testing/until.ts'
import { quietLedger } from '../../quiet-ledger.ts'
import type { Cluster, TestServer } from '../cluster.ts'

/** What a server counts and the dashboard shows, although it is no trouble. */
export async function makeTraffic(cluster: Cluster, one: TestServer): Promise<void> {
  await forgetLock(one)
  const fault = { searchId: 'no-such-import', file: 'a.ris', reason: 'Unreadable' }
  await publishAs(cluster, 'ignored-1', { topic: 'ReferenceFileFaulted', body: fault })
  await resetClient(one)
}

async function forgetLock(one: TestServer): Promise<void> {
  const sent = await one.send({ recipientEmail: 'forgotten@example.com', message: 'Once more, please' })
  assert.equal(sent.body.success, true, sent.text)
  const { rows } = (await one.console('/guard')).body as unknown as {
    readonly rows: readonly { readonly id: string }[]
  }
  const forgotten = await one.asOperator('POST', '/api/console/actions', { action: 'forget', id: rows[0]?.id })
  assert.equal(forgotten.status, 200, forgotten.text)
}

/** An event that another team publishes. */
export async function publishAs({ store }: Cluster, key: string, message: OutboxMessage): Promise<string> {
  const ledger = quietLedger(store as SqlStore)
  createOutbox({ ledger })
  const publish = ledger.operation<null>({ name: 'other.publish', effect: 'transaction' })
  const messageId = await publish.run({ tenant: 'other', caller: 'team', key }, null, async (context) => {
    await context.outbox.add(message)
    return context.derive('outbox:0')
  })
  await ledger.stop()
  return String(messageId)
}

/** A reader that comes when the oldest messages of its room are gone. */
async function resetClient({ url, apiKey }: TestServer): Promise<void> {
  const enter = (receiver: { readonly message?: () => void; readonly reset?: () => void }) =>
    createStreamClient({
      room: 'old-room',
      regions: ['frankfurt'],
      transport: createWebSocketTransport({
        url: (region) => `${url.replace('http', 'ws')}/chat/socket?region=${region}`,
        token: () => apiKey,
      }),
      mode: 'at-least-once',
      from: 'start',
      receiver: { message() {}, ...receiver },
    })
  const writer = await enter({})
  for (const text of ['one', 'two', 'three']) await (await writer.send({ text })).accepted
  await writer.stop()
  let wasReset = false
  await until('a reader is reset', async () => {
    const reader = await enter({
      reset() {
        wasReset = true
      },
    })
    await (await reader.send({ text: 'here' })).accepted
    await reader.stop()
    return wasReset
  })
}

import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { OnceError } from 'onceonly'
import { readConfig } from '../../../../service/config.ts'
import { createLog } from '../../../../service/logs.ts'
import { createAccept } from '../../../../service/messages/accept.ts'
import type { Channel, Result } from '../../../../service/messages/channels/channel.ts'
import { createDelivery } from '../../../../service/messages/deliver.ts'
import { type MessageRow, messageColumns, noCrmIds } from '../../../../service/messages/message.ts'
import { migrations } from '../../../../service/messages/schema.ts'
import { type Base, openBase } from '../../../../service/store.ts'

const SEND_TIMEOUT_MS = 200
const sent: Result = { kind: 'sent', providerMessageId: 'p-1' }

/** One message in a store of its own, and a provider that the test speaks for. */
async function opened(provider: Channel['send']) {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-deliver-'))
  const base = openBase({ ...readConfig({}), dataFolder: folder, testClock: true }, null)
  await base.sql.migrate('messages', migrations)
  const draft = {
    to: { workspaceId: 'w', phone: '+491', email: null },
    leadId: null,
    crmIds: noCrmIds,
    body: 'Hi',
    channel: 'webhook',
    attachments: [],
    subject: null,
    lockHash: 'h',
  }
  const { row } = await createAccept(base, 1_000)(draft, { effectKey: 'e', keyClaim: null })
  const channel: Channel = {
    name: 'webhook',
    dedups: true,
    reaches: () => true,
    complaints: () => [],
    send: provider,
  }
  const deliveryOn = (on: Base) =>
    createDelivery({
      base: on,
      channels: { get: () => channel, pick: () => channel },
      sendTimeoutMs: SEND_TIMEOUT_MS,
      log: createLog({ logLevel: 'silent' }),
    })
  const delivery = deliveryOn(base)
  const stateOf = async () => {
    const [now] = await base.sql.query<MessageRow>(`select ${messageColumns} from messages`)
    assert.ok(now !== undefined)
    return now
  }
  return {
    base,
    row,
    delivery,
    deliveryOn,
    stateOf,
    async [Symbol.asyncDispose]() {
      await delivery.stop()
      await base.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

test('of all who want to send a message, one does, and the others see what came of it', async () => {
  let calls = 0
  await using world = await opened(async () => {
    calls++
    await new Promise((resolve) => setTimeout(resolve, 50))
    return sent
  })
  const { row, delivery } = world
  const rows = await Promise.all(Array.from({ length: 10 }, () => delivery.deliver(row)))
  assert.equal(calls, 1)
  assert.deepEqual(new Set(rows.map(({ status }) => status)), new Set(['sent']))
})

test('a sender whose message was taken over writes nothing over its successor', async () => {
  const first = Promise.withResolvers<Result>()
  const answers: Promise<Result>[] = [first.promise, Promise.resolve(sent)]
  await using world = await opened(() => answers.shift() ?? Promise.resolve(sent))
  const { row, delivery, stateOf } = world
  assert.equal((await delivery.deliver(row)).status, 'unknown')
  // The first attempt fell silent, and was found in the middle of its send.
  await world.base.sql.query(`update messages set status = 'sending'`)
  await delivery.redeliver(await stateOf())
  assert.equal((await stateOf()).status, 'sent')
  first.resolve({ kind: 'failed', error: 'too late' })
  await delivery.stop()
  assert.deepEqual([(await stateOf()).status, (await stateOf()).error], ['sent', null])
})

test('a message that somebody else gave up is not sent again by whoever comes late', async () => {
  let calls = 0
  await using world = await opened(async () => {
    calls++
    return sent
  })
  const { row, delivery, base, stateOf } = world
  await base.sql.query(`update messages set status = 'sending', sender = 'dead'`)
  await delivery.giveUp(await stateOf(), 'vanished')
  const late = await delivery.deliver(row)
  assert.deepEqual([late.status, late.error, calls], ['unknown', 'vanished', 0])
  assert.equal((await stateOf()).sender, 'dead')
})

test('what the provider said is told although the store cannot note it, and is noted when it can', async () => {
  let away = false
  await using world = await opened(async () => {
    away = true
    return sent
  })
  const { base, row } = world
  const unreachable = { ...base, sql: { ...base.sql, query: base.sql.query } }
  unreachable.sql.query = async (text, values) => {
    if (away) throw new OnceError('store_unavailable', 'It is away.', { applied: 'no' })
    return base.sql.query(text, values)
  }
  const delivery = world.deliveryOn(unreachable)
  const told = await delivery.deliver(row)
  assert.deepEqual([told.status, told.provider_message_id], ['sent', 'p-1'])
  assert.equal((await world.stateOf()).status, 'sending')
  away = false
  await delivery.stop()
  assert.equal((await world.stateOf()).status, 'sent')
})

test('a provider that throws has said nothing', async () => {
  await using world = await opened(async () => {
    throw new Error('a bug of ours')
  })
  const { status, error } = await world.delivery.deliver(world.row)
  assert.deepEqual([status, error], ['unknown', 'a bug of ours'])
})

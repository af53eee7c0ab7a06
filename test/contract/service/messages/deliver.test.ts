import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLedger, failed, OnceError, rerun } from 'onceonly'
import type { Result } from '../../../../service/messages/channels/channel.ts'
import { DELIVERY_OPERATION } from '../../../../service/messages/delivery.ts'
import { until } from '../../../../src/testing/until.ts'
import { openDelivery as opened, sent } from '../../../support/service/messages/delivery.ts'

test('of all processes that deliver a message, one sends, and the others see the result', async () => {
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
  await using world = await opened(() => first.promise)
  const { row, delivery, stateOf } = world
  assert.equal((await delivery.deliver(row)).status, 'unknown')
  // The first attempt got no response, and an operator found that its message had arrived.
  await delivery.resolve(await stateOf(), { kind: 'sent', providerMessageId: null }, 'an operator')
  assert.equal((await stateOf()).status, 'sent')
  first.resolve({ kind: 'failed', error: 'too late' })
  await delivery.stop()
  assert.deepEqual([(await stateOf()).status, (await stateOf()).error], ['sent', null])
})

test('a message that another process gave up is not sent again by a late one', async () => {
  let calls = 0
  await using world = await opened(async () => {
    calls++
    throw new Error('vanished')
  })
  const { row, delivery } = world
  assert.equal((await delivery.deliver(row)).status, 'unknown')
  // It still holds the message as it was before.
  const late = await delivery.deliver(row)
  assert.deepEqual([late.status, calls], ['unknown', 1])
})

test('the answer of the provider is returned while the store is away, and is stored when it is back', async () => {
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
  const ledger = createLedger({ store: base.store, background: false })
  const delivery = world.deliveryOn(unreachable, ledger)
  const delivered = await delivery.deliver(row)
  assert.deepEqual([delivered.status, delivered.provider_message_id], ['sent', 'p-1'])
  assert.equal((await world.stateOf()).status, 'sending')
  away = false
  await delivery.follow(await world.stateOf())
  assert.equal((await world.stateOf()).status, 'sent')
  await ledger.stop()
})

test('a process that dies after it wrote the status and before the outcome leaves no unknown', async () => {
  let calls = 0
  await using world = await opened(async () => {
    calls++
    return sent
  })
  const { base, row } = world
  const dying = { ...base.store, claims: { ...base.store.claims } }
  dying.claims.apply = ((request, call) =>
    request.kind === 'settle'
      ? new Promise(() => {})
      : base.store.claims.apply(request, call)) as typeof dying.claims.apply
  void world.deliveryOn(base, createLedger({ store: dying, background: false })).deliver(row)
  await until('the status is written', async () => (await world.stateOf()).status === 'sent')
  const stateOfRecord = async () => {
    const identity = { tenant: 'w', caller: 'messages', operation: DELIVERY_OPERATION, key: row.id }
    return (await world.ledger.get(identity))?.record.state
  }
  assert.equal(await stateOfRecord(), 'in_progress')
  await base.advance(5 * 60_000)
  await world.ledger.upkeep.reconcile()
  await until('the record has the outcome', async () => (await stateOfRecord()) === 'succeeded')
  assert.equal(calls, 1)
})

test('a provider that throws has said nothing', async () => {
  await using world = await opened(async () => {
    throw new Error('a bug')
  })
  const { status, error } = await world.delivery.deliver(world.row)
  assert.deepEqual([status, error], ['unknown', 'a bug'])
})

test('a process that read the message before its outcome keeps the reason that the sender wrote', async () => {
  await using world = await opened(async () => {
    throw new Error('a bug')
  })
  await world.delivery.deliver(world.row)
  // It still holds the message without a reason.
  await world.delivery.follow(world.row)
  const { status, error } = await world.stateOf()
  assert.deepEqual([status, error], ['unknown', 'a bug'])
})

test('a late answer of the provider resolves the unknown', async () => {
  const answer = Promise.withResolvers<Result>()
  await using world = await opened(() => answer.promise)
  assert.equal((await world.delivery.deliver(world.row)).status, 'unknown')
  answer.resolve(sent)
  await until('the late answer is written', async () => (await world.stateOf()).status === 'sent')
})

test('a provider with idempotency keys is called again under the same key when a caller waits for the outcome', async () => {
  const keys: string[] = []
  await using world = await opened(
    async ({ effectKey }) => {
      keys.push(effectKey)
      if (keys.length === 1) throw new Error('cut')
      return sent
    },
    { dedups: true },
  )
  assert.equal((await world.delivery.deliver(world.row)).status, 'unknown')
  assert.equal((await world.delivery.deliver(world.row)).status, 'sent')
  assert.deepEqual(keys, ['e', 'e'])
})

test('"not now" leaves the message queued until the time that the provider named, and is no failure', async () => {
  let calls = 0
  await using world = await opened(async () => {
    calls++
    return calls === 1 ? { kind: 'not_now', error: 'busy', retryAfterMs: 60_000 } : sent
  })
  const first = await world.delivery.deliver(world.row)
  assert.deepEqual([first.status, first.error], ['queued', 'busy'])
  assert.ok(Number(first.due_at) - Number(first.status_at) >= 59_000)
  assert.equal((await world.delivery.deliver(first)).status, 'queued')
  assert.equal(calls, 1, 'not before its time')
  await world.base.advance(61_000)
  assert.equal((await world.delivery.deliver(first)).status, 'sent')
})

test('a message that an operator resolved as not sent goes out again, under the same key', async () => {
  const keys: string[] = []
  await using world = await opened(async ({ effectKey }) => {
    keys.push(effectKey)
    if (keys.length === 1) throw new Error('cut')
    return sent
  })
  const unknown = await world.delivery.deliver(world.row)
  const queued = await world.delivery.resolve(unknown, { kind: 'not_sent' }, 'an operator')
  assert.equal(queued.status, 'queued')
  assert.equal((await world.delivery.deliver(queued)).status, 'sent')
  assert.deepEqual(keys, ['e', 'e'])
})

test('a resolve of the record itself, as the command line does it, reaches the message', async () => {
  await using world = await opened(async () => {
    throw new Error('cut')
  })
  const unknown = await world.delivery.deliver(world.row)
  const identity = { tenant: 'w', caller: 'messages', operation: DELIVERY_OPERATION, key: world.row.id }
  await world.ledger.resolve(identity, failed(new Error('refused')))
  await world.delivery.follow(unknown)
  const { status, error } = await world.stateOf()
  assert.deepEqual([status, error], ['failed', 'refused'])
})

test('a rerun by an operator sends an unknown message again; a record that is gone does not', async () => {
  let calls = 0
  await using world = await opened(async () => {
    calls++
    if (calls === 1) throw new Error('cut')
    return sent
  })
  const unknown = await world.delivery.deliver(world.row)
  const identity = { tenant: 'w', caller: 'messages', operation: DELIVERY_OPERATION, key: world.row.id }
  await world.ledger.forget(identity)
  await world.delivery.follow(unknown)
  assert.deepEqual([(await world.stateOf()).status, calls], ['unknown', 1])
  await world.ledger.resolve(identity, rerun)
  await world.delivery.follow(unknown)
  assert.deepEqual([(await world.stateOf()).status, calls], ['sent', 2])
})

import assert from 'node:assert/strict'
import { createLedger, DAY, final, isOnceError } from 'onceonly'
import { acknowledgementOf, createInbox, postpone } from 'onceonly/inbox'
import { eventsOf, messageOf, onInbox } from '../../../support/events/inbox/stage.ts'
import { createHeld } from '../../../support/ledger/worlds.ts'

onInbox('a message is handled once, and its copies are explained', {}, async ({ inbox, events, write, written }) => {
  const beganAt = Date.now()
  const seen: unknown[] = []
  const first = await inbox.receive(messageOf('m1'), async (body, { tx, message }) => {
    seen.push([body, message.topic])
    await write(tx, 'row')
  })
  assert.deepEqual(first, { kind: 'handled', id: 'm1' })
  assert.deepEqual(seen, [[{ order: 'm1' }, 'orders']])
  for (const delivery of [1, 2, 7]) {
    const copy = await inbox.receive(messageOf('m1', { deliveries: delivery }), () => assert.fail('it ran again'))
    assert.ok(copy.kind === 'duplicate' && copy.by === 'id')
    assert.deepEqual(copy.first.settled, { kind: 'handled' })
    assert.deepEqual([copy.first.delivery, copy.first.topic], [1, 'orders'])
    // The clock of the store is that of this machine, to the minute.
    const at = copy.first.at ?? 0
    assert.ok(at > beganAt - 60_000 && at < Date.now() + 60_000, String(at))
    assert.deepEqual(acknowledgementOf(copy), { kind: 'done' })
  }
  assert.deepEqual(await written(), ['row'])
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['handled', 'duplicate', 'duplicate', 'duplicate'],
  )
  const explained = await inbox.explain('m1')
  assert.deepEqual(explained.first?.settled, { kind: 'handled' })
  assert.equal(explained.failures, 0)
  assert.equal((await inbox.explain('unknown')).first, null)
})

onInbox('the form of a JSON body does not make another message', {}, async ({ inbox }) => {
  await inbox.receive(messageOf('m1', { body: '{"a":1,"b":[2]}' }), () => {})
  const copy = await inbox.receive(messageOf('m1', { body: ' {"b": [2.0], "a": 1e0}' }), () => assert.fail('it ran'))
  assert.equal(copy.kind, 'duplicate')
})

onInbox('the same id with another body is a conflict, kept and reported', {}, async ({ inbox, events }) => {
  await inbox.receive(messageOf('m1'), () => {})
  for (let copies = 0; copies < 2; copies++) {
    const other = await inbox.receive(messageOf('m1', { body: '{"order":"other"}' }), () => assert.fail('it ran'))
    assert.ok(other.kind === 'conflict' && other.recorded !== other.presented)
    assert.deepEqual(acknowledgementOf(other), { kind: 'done' })
  }
  assert.equal(eventsOf(events, 'conflict').length, 2)
  const { rows } = await inbox.deadLetters.list({ reason: 'conflict' })
  assert.deepEqual(
    rows.map(({ message }) => message.body),
    ['{"order":"other"}'],
  )
  const [redriven] = await inbox.deadLetters.redrive({}, { effect: () => assert.fail('it ran') })
  assert.deepEqual(redriven?.result, { kind: 'conflict' })
  assert.deepEqual((await inbox.explain('m1')).first?.settled, { kind: 'handled' })
})

onInbox('concurrent copies run once, in one process and in two', {}, async ({ inbox, second, write, written }) => {
  const other = await second()
  const held = createHeld<void>()
  let runs = 0
  const take = (receiver: typeof inbox) =>
    receiver.receive(messageOf('m1'), async (_, { tx }) => {
      runs++
      await held.effect()
      await write(tx, `run ${runs}`)
    })
  const first = take(inbox)
  await held.begun
  const copies = [take(inbox), take(inbox), take(other), take(other)]
  held.finish()
  assert.equal((await first).kind, 'handled')
  for (const copy of await Promise.all(copies)) assert.equal(copy.kind, 'duplicate')
  assert.deepEqual([runs, await written()], [1, ['run 1']])
})

onInbox('an effect that throws leaves nothing, and the redelivery runs it again', {}, async (stage) => {
  const { inbox, events, write, written, advance } = stage
  let runs = 0
  const deliver = (deliveries: number) =>
    inbox.receive(messageOf('m1', { deliveries }), async (_, { tx }) => {
      await write(tx, 'row')
      if (++runs < 3) throw new Error(`failure ${runs}`)
    })
  const first = await deliver(1)
  assert.ok(first.kind === 'later' && first.counted && first.delayMs >= 500)
  assert.deepEqual(await written(), [])
  // The broker may be impatient; the back-off is the inbox's.
  const early = await deliver(2)
  assert.ok(early.kind === 'later' && !early.counted && early.delayMs > 0)
  assert.equal(runs, 1)
  await advance(first.delayMs)
  const second = await deliver(3)
  assert.ok(second.kind === 'later' && second.counted && second.delayMs > first.delayMs / 2)
  assert.deepEqual((await inbox.explain('m1')).lastFailure?.message, 'failure 2')
  await advance(second.delayMs)
  assert.equal((await deliver(4)).kind, 'handled')
  assert.equal((await deliver(5)).kind, 'duplicate')
  assert.deepEqual([runs, await written()], [3, ['row']])
  assert.deepEqual(
    eventsOf(events, 'failed').map(({ failures }) => failures),
    [1, 2],
  )
  const explained = await inbox.explain('m1')
  assert.deepEqual([explained.first?.delivery, explained.failures], [4, 2])
})

onInbox('a message that fails in two copies at once counts one failure', {}, async ({ inbox }) => {
  const held = createHeld<void>()
  const take = () =>
    inbox.receive(messageOf('m1'), async () => {
      await held.effect()
      throw new Error('no')
    })
  const first = take()
  await held.begun
  const copy = take()
  held.finish()
  const receipts = await Promise.all([first, copy])
  assert.deepEqual(
    receipts.map((receipt) => receipt.kind === 'later' && receipt.counted),
    [true, false],
  )
  assert.equal((await inbox.explain('m1')).failures, 1)
})

onInbox('a copy after the window is a new message', { windowMs: 1 * DAY }, async ({ inbox, second, advance }) => {
  const take = (receiver: typeof inbox) => receiver.receive(messageOf('m1'), () => {})
  assert.equal((await take(inbox)).kind, 'handled')
  await advance(1 * DAY - 5_000)
  assert.equal((await take(inbox)).kind, 'duplicate')
  await advance(10_000)
  // Elsewhere: what was just replayed here may be remembered for a second of real time.
  assert.equal((await take(await second())).kind, 'handled')
})

onInbox(
  'two messages with one intent are handled once',
  {
    intent: (body) => (body as { order?: string }).order ?? null,
  },
  async ({ inbox, second, events, write, written }) => {
    const body = '{"order":"o1"}'
    const take = (receiver: typeof inbox, id: string) =>
      receiver.receive(messageOf(id, { body }), (_, { tx }) => write(tx, 'row'))
    assert.equal((await take(inbox, 'm1')).kind, 'handled')
    const other = await take(inbox, 'm2')
    assert.ok(other.kind === 'duplicate' && other.by === 'intent')
    assert.deepEqual(other.first.settled, { kind: 'intent_done', by: 'm1' })
    const again = await take(await second(), 'm2')
    assert.ok(again.kind === 'duplicate' && again.by === 'intent')
    assert.deepEqual(await written(), ['row'])
    assert.equal(eventsOf(events, 'duplicate').length, 2)
    // Without an intent there is nothing to compare.
    assert.equal((await inbox.receive(messageOf('m3', { body: '{}' }), () => {})).kind, 'handled')
    assert.equal((await inbox.receive(messageOf('m4', { body: '{}' }), () => {})).kind, 'handled')
  },
)

onInbox('an effect may postpone a message: undone, not counted, asked again', { maxFailures: 1 }, async (stage) => {
  const { inbox, write, written } = stage
  for (let tries = 1; tries <= 3; tries++) {
    const receipt = await inbox.receive(messageOf('m1', { deliveries: tries }), async (_, { tx }) => {
      await write(tx, 'row')
      throw postpone('not yet', { delayMs: 1_234 })
    })
    assert.ok(receipt.kind === 'later' && !receipt.counted && receipt.delayMs === 1_234)
    assert.deepEqual(acknowledgementOf(receipt), { kind: 'later', delayMs: 1_234 })
  }
  assert.deepEqual(await written(), [])
  assert.deepEqual([(await inbox.explain('m1')).failures, (await inbox.explain('m1')).unfinished], [0, 0])
  assert.equal((await inbox.receive(messageOf('m1', { deliveries: 4 }), () => {})).kind, 'handled')
})

onInbox(
  'keys for other systems stay the same over rollbacks, and differ by consumer and message',
  {},
  async (stage) => {
    const { inbox, another, advance } = stage
    const keys: string[] = []
    const take = (receiver: typeof inbox, id: string, fails: boolean) =>
      receiver.receive(messageOf(id), (_, { effectKey, derive }) => {
        keys.push(`${effectKey} ${derive('mail')}`)
        if (fails) throw new Error('no')
      })
    await take(inbox, 'm1', true)
    await advance(1 * DAY)
    await take(inbox, 'm1', false)
    await take(inbox, 'm2', false)
    await take(another({ consumer: 'shipping' }), 'm1', false)
    assert.equal(keys[0], keys[1])
    assert.equal(new Set(keys.flatMap((pair) => pair.split(' '))).size, 6)
  },
)

onInbox('ids of any form are distinct', {}, async ({ inbox }) => {
  const long = 'x'.repeat(2_000)
  const ids = ['ä', 'a b', '\ud800', '\ud801', `${long}1`, `${long}2`, 'nul\0', 'sha256:00', '😀']
  for (const id of ids) assert.equal((await inbox.receive(messageOf(id), () => {})).kind, 'handled', id)
  for (const id of ids) {
    const copy = await inbox.receive(messageOf(id), () => assert.fail('it ran'))
    assert.ok(copy.kind === 'duplicate' && copy.id === id)
    assert.deepEqual((await inbox.explain(id)).first?.settled, { kind: 'handled' })
  }
})

onInbox('an effect that never will succeed parks its message at once', {}, async ({ inbox, write, written }) => {
  const receipt = await inbox.receive(messageOf('m1'), async (_, { tx }) => {
    await write(tx, 'row')
    throw final(Object.assign(new Error('no such customer'), { code: 'no_customer' }))
  })
  assert.ok(receipt.kind === 'parked' && receipt.reason === 'final')
  assert.equal(receipt.failure?.code, 'no_customer')
  assert.deepEqual(await written(), [])
  const copy = await inbox.receive(messageOf('m1', { deliveries: 2 }), () => assert.fail('it ran'))
  assert.ok(copy.kind === 'duplicate')
  assert.deepEqual(copy.first.settled, { kind: 'parked', reason: 'final' })
})

onInbox('a message costs one transaction, and nothing beside it', {}, async ({ inbox, store, ledger }) => {
  // The tables are there by now.
  await inbox.sweep()
  const calls: string[] = []
  const counted: typeof store = {
    ...store,
    transactions: {
      run: (work, call) => {
        calls.push('transaction')
        return store.transactions.run(work, call)
      },
    },
    claims: {
      ...store.claims,
      apply: (request, call) => {
        calls.push('claims')
        return store.claims.apply(request, call)
      },
    },
    sql: {
      ...store.sql,
      query: (text, values) => {
        calls.push(text)
        return store.sql.query(text, values)
      },
    },
    clock: {
      ...store.clock,
      now: (call) => {
        calls.push('clock')
        return store.clock.now(call)
      },
    },
  }
  await ledger.stop()
  const once = createLedger({ store: counted, background: false })
  const thrifty = createInbox({ ledger: once, consumer: 'thrifty', background: false })
  await thrifty.receive(messageOf('m1'), () => {})
  await thrifty.receive(messageOf('m2', { deliveries: null }), () => {})
  assert.deepEqual(calls, ['transaction', 'transaction'])
  await thrifty.stop()
  await once.stop()
})

onInbox('a body that was parked does not stand in the way of a better one', {}, async ({ inbox }) => {
  assert.equal((await inbox.receive(messageOf('m1', { body: '{' }), () => {})).kind, 'parked')
  assert.equal((await inbox.receive(messageOf('m1'), () => assert.fail('it ran'))).kind, 'conflict')
  const [redriven] = await inbox.deadLetters.redrive({ reason: 'conflict' }, { effect: () => {} })
  assert.ok(redriven?.result.kind === 'ran' && redriven.result.receipt.kind === 'handled')
  const [first] = await inbox.deadLetters.redrive({}, { effect: () => assert.fail('it ran') })
  assert.deepEqual(first?.result, { kind: 'handled_before' })
  assert.equal(await inbox.deadLetters.count(), 0)
})

onInbox('an inbox inside of a transaction is refused, and so are options that make no sense', {}, async (stage) => {
  const { inbox, ledger, store } = stage
  const op = ledger.operation({ name: 'outer', effect: 'transaction' })
  const nested = op.run({ tenant: 'a', caller: 'b', key: 'c' }, null, () =>
    inbox.receive(messageOf('m1'), () => assert.fail('it ran')),
  )
  await assert.rejects(nested, (error) => isOnceError(error, 'nested_claim'))
  const refuses = (option: string, changes: object) =>
    assert.throws(
      () => createInbox({ ledger, consumer: 'other', background: false, ...changes }),
      (error) => isOnceError(error, 'bad_option') && error.details['option'] === option,
    )
  refuses('consumer', { consumer: ' ' })
  refuses('consumer', { consumer: 'x'.repeat(101) })
  refuses('windowMs', { windowMs: 0 })
  refuses('maxFailures', { maxFailures: 1.5 })
  refuses('ordered.onHole', { ordered: { onHole: 'ignore' } })
  refuses('ledger', { ledger: { ...ledger, store: { ...store, sql: undefined } } })
  refuses('ledger', { ledger: store })
  assert.throws(() => createInbox({ ledger, consumer: 'billing', background: false }), /declared twice/)
})

import assert from 'node:assert/strict'
import { limits } from 'onceonly'
import { partitionTopic } from '../../../../src/events/outbox/add.ts'
import { createRows } from '../../../../src/events/outbox/rows.ts'
import { createRuntime } from '../../../../src/runtime/runtime.ts'
import { until } from '../../../../src/testing/until.ts'
import { hurriedRuntime, many, onOutbox, sequences } from '../../../support/events/outbox/ground.ts'
import { sqlStore } from '../../../support/place.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'

onOutbox('order per key is commit order, under many transactions at once', async (ground) => {
  const { outbox, inTx, desk, place } = ground
  const written = place.store
  ground.relay()
  // Each transaction writes down the number of its key's turn, which its own row lock makes the order of commits.
  await Promise.all(
    many(8, async (writer) => {
      for (let n = 0; n < 12; n++) {
        const keys = [`k-${(writer + n) % 3}`, `solo-${writer}`]
        await inTx(async (tx) => {
          for (const key of keys) {
            await outbox.add(tx, { topic: 'orders.paid', key, body: { writer, n } })
            await tx.query('insert into business (place, key, value) values (?, ?, ?)', [n, key, `${writer}:${n}`])
          }
        })
      }
    }),
  )
  await ground.drained()
  assert.equal(written, place.store)
  for (const [key, numbers] of sequences(desk.taken)) {
    assert.deepEqual(
      numbers,
      [...numbers.keys()].map((index) => index + 1),
      key,
    )
  }
  assert.equal(desk.taken.length, 8 * 12 * 2)
  for (const writer of many(8, (n) => n)) {
    const own = desk.taken.filter(({ key }) => key === `solo-${writer}`).map(({ body }) => body)
    assert.deepEqual(
      own,
      many(12, (n) => JSON.stringify({ writer, n })),
    )
  }
})

onOutbox('a transaction that commits late is not passed over', async (ground) => {
  const { outbox, inTx, desk, place } = ground
  if (place.address.kind === 'sqlite') return
  ground.relay()
  const added = Promise.withResolvers<void>()
  const finish = Promise.withResolvers<void>()
  const late = inTx(async (tx) => {
    await outbox.add(tx, { id: 'late', topic: 'orders.paid', key: 'late', body: 1 })
    added.resolve()
    await finish.promise
  })
  await added.promise
  for (let n = 0; n < 20; n++) await ground.add({ topic: 'orders.paid', key: `k-${n}`, body: n })
  await until('the others are published', () => desk.taken.length === 20)
  // The next one of its key waits for it, and is numbered after it.
  const second = ground.add({ id: 'second', topic: 'orders.paid', key: 'late', body: 2 })
  finish.resolve()
  await Promise.all([late, second])
  await ground.drained()
  assert.deepEqual(sequences(desk.taken).get('late'), [1, 2])
  assert.deepEqual(
    desk.taken.slice(20).map(({ id }) => id),
    ['late', 'second'],
  )
})

onOutbox('a key that the broker refuses is parked with the messages behind it; other keys continue', async (ground) => {
  const { outbox, desk, events } = ground
  desk.verdict = ({ key, sequence }) =>
    key === 'bad' && sequence === 2 ? { kind: 'refused', reason: 'too large for me' } : null
  for (let n = 1; n <= 4; n++) await ground.add({ topic: 'orders.paid', key: 'bad', body: n })
  for (let n = 1; n <= 4; n++) await ground.add({ topic: 'orders.paid', key: 'good', body: n })
  ground.relay({ maxAttempts: 3 })
  await ground.drained()
  await until('the refused one is parked with those behind it', async () => (await outbox.deadLetters.count()) === 3)
  assert.deepEqual(sequences(desk.taken).get('good'), [1, 2, 3, 4])
  assert.deepEqual(sequences(desk.taken).get('bad'), [1])
  const { rows } = await outbox.deadLetters.list({ key: 'bad' })
  assert.deepEqual(
    rows.map(({ message, attempts }) => [message.sequence, attempts]),
    [
      [2, 3],
      [3, 0],
      [4, 0],
    ],
  )
  assert.equal(rows[0]?.reason, 'too large for me')
  assert.deepEqual(
    events.filter(({ kind }) => kind === 'failed').map((event) => event.kind === 'failed' && event.attempts),
    [1, 2],
  )
  // What is added later joins the others, so that nothing overtakes.
  await ground.add({ topic: 'orders.paid', key: 'bad', body: 5 })
  await until('the later one has joined them', async () => (await outbox.deadLetters.count()) === 4)
  const status = await outbox.status()
  assert.deepEqual([status.parkedKeys, status.deadLetters, status.failing, status.pending], [1, 4, 0, 0])

  desk.verdict = () => null
  const [first] = rows
  const preview = await outbox.deadLetters.redrive({ ids: [first?.message.id ?? ''] }, { preview: true })
  assert.equal(preview.length, 4)
  assert.equal(await outbox.deadLetters.count(), 4)
  const redriven = await outbox.deadLetters.redrive({ ids: [first?.message.id ?? ''] })
  assert.deepEqual(redriven, preview)
  await ground.add({ topic: 'orders.paid', key: 'bad', body: 6 })
  await ground.drained()
  assert.deepEqual(sequences(desk.taken).get('bad'), [1, 2, 3, 4, 5, 6])
  assert.equal(await outbox.deadLetters.count(), 0)
})

onOutbox(
  'attempts are counted for the message at the head of its key, not for the one that follows',
  async (ground) => {
    const { desk, events } = ground
    let tries = 0
    desk.verdict = ({ key, sequence }) => {
      if (key !== 'a') return null
      if (sequence === 1) return ++tries < 3 ? { kind: 'refused', reason: 'not yet' } : null
      return { kind: 'refused', reason: 'never' }
    }
    await ground.inTx(async (tx) => {
      for (let n = 1; n <= 2; n++) await ground.outbox.add(tx, { topic: 'orders.paid', key: 'a', body: n })
    })
    ground.relay({ maxAttempts: 4 })
    await until('the second message is parked', async () => (await ground.outbox.deadLetters.count()) === 1)
    const counts = events.flatMap((event) =>
      event.kind === 'failed' || event.kind === 'parked' ? [event.attempts] : [],
    )
    assert.deepEqual(counts, [1, 2, 1, 2, 3, 4])
  },
)

onOutbox('a message without a key is parked by itself, and purged', async (ground) => {
  const { outbox, desk } = ground
  desk.verdict = ({ topic }) => (topic === 'not.routed' ? { kind: 'refused', reason: 'unroutable' } : null)
  await ground.add({ id: 'lost', topic: 'not.routed', body: 1 })
  for (let n = 0; n < 5; n++) await ground.add({ topic: 'orders.paid', body: n })
  ground.relay({ maxAttempts: 2 })
  await ground.drained()
  assert.equal(desk.taken.length, 5)
  const { rows } = await outbox.deadLetters.list()
  assert.deepEqual(
    rows.map(({ message, attempts, reason }) => [message.id, attempts, reason]),
    [['lost', 2, 'unroutable']],
  )
  assert.equal((await outbox.deadLetters.purge({ topic: 'not.routed' }, { preview: true })).length, 1)
  assert.equal(await outbox.deadLetters.count(), 1)
  assert.equal((await outbox.deadLetters.purge({ topic: 'not.routed' })).length, 1)
  const status = await outbox.status()
  assert.deepEqual([status.deadLetters, status.failing, status.parkedKeys], [0, 0, 0])
})

onOutbox('concurrent redrives of the same dead letters do not disturb each other', async (ground) => {
  const { desk, outbox } = ground
  desk.verdict = () => ({ kind: 'refused', reason: 'no' })
  for (let n = 0; n < 20; n++) await ground.add({ topic: 'orders.paid', body: n })
  const relay = ground.relay({ maxAttempts: 1 })
  await until('all of them are parked', async () => (await outbox.deadLetters.count()) === 20)
  await relay.stop()
  const redriven = await Promise.all(many(6, () => outbox.deadLetters.redrive({})))
  assert.equal(redriven.flat().length, 20)
  assert.equal(await ground.pending(), 20)
})

onOutbox('purging the last dead letter of a key frees the key', async (ground) => {
  const { outbox, desk } = ground
  desk.verdict = ({ body }) => (body === '"poison"' ? { kind: 'refused', reason: 'no' } : null)
  await ground.add({ id: 'p', topic: 'orders.paid', key: 'a', body: 'poison' })
  await ground.add({ id: 'q', topic: 'orders.paid', key: 'a', body: 'fine' })
  ground.relay({ maxAttempts: 1 })
  await until('both messages are parked', async () => (await outbox.deadLetters.count()) === 2)
  await outbox.deadLetters.purge({ ids: ['p'] })
  assert.equal((await outbox.status()).parkedKeys, 1)
  await outbox.deadLetters.redrive({ key: 'a' })
  await ground.drained()
  assert.deepEqual(
    desk.taken.map(({ id }) => id),
    ['q'],
  )
  await ground.add({ id: 'p2', topic: 'orders.paid', key: 'a', body: 'poison' })
  await until('the refused message is parked', async () => (await outbox.deadLetters.count()) === 1)
  await outbox.deadLetters.purge({ key: 'a' })
  await ground.add({ id: 'r', topic: 'orders.paid', key: 'a', body: 'fine' })
  await until('the key is free', () => desk.taken.some(({ id }) => id === 'r'))
})

onOutbox('a broker that is away burns no attempt, and nothing is lost or reordered', async (ground) => {
  const { outbox, desk, events } = ground
  let away = 12
  desk.verdict = () => {
    away -= 1
    return away >= 0 ? { kind: 'unavailable', reason: 'gone fishing' } : null
  }
  for (let n = 1; n <= 5; n++) await ground.add({ topic: 'orders.paid', key: 'a', body: n })
  await ground.add({ topic: 'orders.paid', body: 'free' })
  ground.relay({ maxAttempts: 1, runtime: hurriedRuntime() })
  await ground.drained()
  assert.deepEqual(sequences(desk.taken).get('a'), [1, 2, 3, 4, 5])
  assert.equal(await outbox.deadLetters.count(), 0)
  assert.ok(events.some((event) => event.kind === 'unavailable' && event.reason === 'gone fishing'))
})

onOutbox('a publisher that throws or answers too little counts as away', async (ground) => {
  const { desk } = ground
  const publish = desk.publish.bind(desk)
  let calls = 0
  const faulty = {
    name: 'faulty',
    publish: async (...[messages, call]: Parameters<typeof publish>) => {
      calls += 1
      if (calls === 1) throw new Error('it should not')
      const answers = await publish(messages, call)
      return calls === 2 ? answers.slice(1) : answers
    },
  }
  for (let n = 1; n <= 5; n++) await ground.add({ topic: 'orders.paid', key: 'a', body: n })
  ground.relay({ publisher: faulty })
  await ground.drained()
  assert.deepEqual(sequences(desk.taken).get('a'), [1, 2, 3, 4, 5])
})

onOutbox('what is added while a relay sleeps wakes it', async (ground) => {
  const { desk, events, place } = ground
  const store = sqlStore(place.another())
  // A store that does not listen yet misses what is added; a relay then relies on its own looks.
  await store.sql.listen(partitionTopic(0), () => {}).ready
  // A relay that never looks by itself: its rests have no end.
  const runtime = { ...createRuntime(), setTimer: () => ({ cancel: () => {} }) }
  ground.relay({ ledger: quietLedger(store), runtime, leaseMs: limits.leaseMaxMs })
  await until('the relay has its partitions', () => events.some(({ kind }) => kind === 'balanced'))
  for (let n = 0; n < 8; n++) {
    await ground.add({ topic: 'orders.paid', key: `k-${n}`, body: n })
    await until('the relay was woken', () => desk.taken.length === n + 1)
  }
})

onOutbox('a refused key is left alone until its time has come, by the clock of the store', async (ground) => {
  const { desk, place, events } = ground
  let asked = 0
  desk.verdict = ({ key }) => {
    if (key !== 'slow') return null
    asked += 1
    return asked === 1 ? { kind: 'refused', reason: 'not yet' } : null
  }
  await ground.add({ topic: 'orders.paid', key: 'slow', body: 1 })
  ground.relay({ backoff: { baseMs: 3_600_000, capMs: 3_600_000 }, leaseMs: 60_000 })
  await until('the slow key was refused', () => events.some(({ kind }) => kind === 'failed'))
  for (let n = 0; n < 20; n++) await ground.add({ topic: 'orders.paid', key: `k-${n}`, body: n })
  await until('the others are published', () => desk.taken.length === 20)
  assert.equal(asked, 1)
  assert.equal((await ground.outbox.status()).failing, 1)
  await place.advance(3_700_000)
  await ground.drained()
  assert.equal(asked, 2)
  assert.equal((await ground.outbox.status()).failing, 0)
})

onOutbox('rows that a relay read behind a parked one are not parked when a redrive came first', async (ground) => {
  const { desk, store, outbox } = ground
  desk.verdict = ({ sequence }) => (sequence === 1 ? { kind: 'refused', reason: 'no' } : null)
  await ground.add({ topic: 'orders.paid', key: 'a', body: 1 })
  const relay = ground.relay({ maxAttempts: 1 })
  await until('the refused message is parked', async () => (await outbox.deadLetters.count()) === 1)
  await relay.stop()
  await ground.add({ topic: 'orders.paid', key: 'a', body: 2 })
  // As a relay does, with an operator who acts between its read and its write.
  await store.sql.query(`UPDATE onceonly_outbox_partitions SET fence = fence + 1, holder = 'me'`)
  const tenures = (
    await store.sql.query<{ partition: unknown; fence: unknown }>(
      'SELECT partition, fence FROM onceonly_outbox_partitions',
    )
  ).map(({ partition, fence }) => ({ partition: Number(partition), fence: Number(fence) }))
  const rows = createRows(store)
  const { rows: found } = await rows.next(tenures.map(({ partition }) => ({ partition, rows: 10 })))
  assert.deepEqual(
    found.map(({ attempts, message }) => [message.sequence, attempts]),
    [[2, null]],
  )
  await outbox.deadLetters.redrive({})
  assert.deepEqual(await rows.hold(tenures, found), [])
  await store.sql.query(`UPDATE onceonly_outbox_partitions SET holder = NULL, free_at = 0`)
  desk.verdict = () => null
  ground.relay()
  await ground.drained()
  assert.deepEqual(sequences(desk.taken).get('a'), [1, 2])
})

onOutbox('a long backlog of one key goes out in its order, however many batches it takes', async (ground) => {
  const { desk, outbox } = ground
  await ground.inTx(async (tx) => {
    for (let n = 1; n <= 1_200; n++) await outbox.add(tx, { topic: 'orders.paid', key: 'hot', body: n })
  })
  ground.relay()
  await ground.drained()
  assert.deepEqual(
    desk.taken.map(({ sequence }) => sequence),
    many(1_200, (n) => n + 1),
  )
})

onOutbox('a batch is bounded in bytes as a whole, whatever number of partitions it is made of', async (ground) => {
  const { desk } = ground
  // Each is larger than the share of a partition.
  const large = 'x'.repeat(100_000)
  await ground.inTx(async (tx) => {
    for (let n = 0; n < 32; n++) {
      await ground.outbox.add(tx, { topic: 'orders.paid', key: `k-${n % 16}`, body: large })
    }
  })
  const rows = createRows(ground.store)
  const every = many(64, (partition) => ({ partition, rows: 32 }))
  const { rows: found, full } = await rows.next(every)
  const partitions = new Set(found.map(({ partition }) => partition))
  assert.equal(found.length, partitions.size, 'one of each partition, because none may be left out')
  assert.deepEqual(full, partitions, 'and each of them has more')
  ground.relay()
  await ground.drained()
  assert.equal(desk.taken.length, 32)
  for (const numbers of sequences(desk.taken).values()) assert.deepEqual(numbers, [1, 2])
})

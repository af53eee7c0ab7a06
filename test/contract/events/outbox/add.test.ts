import assert from 'node:assert/strict'
import { isOnceError } from 'onceonly'
import { createOutbox } from 'onceonly/outbox'
import { many, onOutbox, sequences } from '../../../support/events/outbox/ground.ts'
import { onEveryPlace, sqlStore, who } from '../../../support/place.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'

onOutbox('what committed is published as it was added, what was rolled back never', async (ground) => {
  const { outbox, desk, inTx } = ground
  const undone = inTx(async (tx) => {
    await outbox.add(tx, { topic: 'orders.paid', key: 'a', body: 'never' })
    throw new Error('undone')
  })
  await assert.rejects(undone, /undone/)
  await inTx((tx) =>
    outbox.add(tx, { topic: 'orders.paid', key: 'order ☃ 1', body: { n: 1.5, s: '☃\0' }, headers: { trace: 'x y' } }),
  )
  await ground.add({ topic: 'orders.sent', body: null })
  ground.relay()
  await ground.drained()
  const [paid, sent] = desk.taken.toSorted((a, b) => (a.topic < b.topic ? -1 : 1))
  assert.equal(desk.taken.length, 2)
  assert.match(paid?.id ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.ok(paid !== undefined)
  const { id: _, ...rest } = paid
  const body = '{"n":1.5,"s":"☃\\u0000"}'
  const headers = { trace: 'x y', 'onceonly-outbox': rest.headers['onceonly-outbox'] }
  assert.deepEqual(rest, { topic: 'orders.paid', key: 'order ☃ 1', sequence: 1, body, headers })
  assert.match(headers['onceonly-outbox'] ?? '', /^[0-9a-f]{32}$/)
  assert.deepEqual([sent?.key, sent?.sequence, sent?.body, sent?.headers], [null, null, 'null', {}])
})

onOutbox(
  'one id is one message: twice in a transaction, in two, at once, and after it was published',
  async (ground) => {
    const { outbox, desk, inTx, place } = ground
    const again = { id: 'order-1-paid', topic: 'orders.paid', key: 'a', body: 1 }
    await inTx(async (tx) => {
      await outbox.add(tx, again)
      await outbox.add(tx, again)
    })
    await ground.add(again)
    const other = sqlStore(place.another())
    const twin = createOutbox({ ledger: quietLedger(other) })
    await twin.prepare()
    const two = { ...again, id: 'order-2-paid' }
    await Promise.all([inTx((tx) => outbox.add(tx, two)), inTx((tx) => twin.add(tx, two), other)])
    ground.relay()
    await ground.drained()
    await ground.add(again)
    await ground.add({ ...again, id: 'order-3-paid' })
    await ground.drained()
    assert.deepEqual(
      desk.taken.map(({ id, sequence }) => [id, sequence]),
      [
        ['order-1-paid', 1],
        ['order-2-paid', 2],
        ['order-3-paid', 3],
      ],
    )
  },
)

onOutbox('an id that was rolled back is free', async (ground) => {
  const { outbox, desk, inTx } = ground
  const message = { id: 'x', topic: 'orders.paid', key: 'a', body: 1 }
  const undone = inTx(async (tx) => {
    await outbox.add(tx, message)
    throw new Error('undone')
  })
  await assert.rejects(undone, /undone/)
  await inTx(async (tx) => {
    const inside = tx.inSavepoint(async () => {
      await outbox.add(tx, message)
      throw new Error('undone')
    })
    await assert.rejects(inside, /undone/)
    await outbox.add(tx, message)
  })
  ground.relay()
  await ground.drained()
  assert.deepEqual(
    desk.taken.map(({ id, sequence }) => [id, sequence]),
    [['x', 1]],
  )
})

onOutbox('commands of a ledger add their messages once, however often they are sent', async (ground) => {
  const { store, outbox, desk } = ground
  const once = quietLedger(store, outbox)
  const open = once.operation<number>({ name: 'open', effect: 'transaction' })
  const send = (key: string) =>
    open.run(who(key), 1, async (work) => {
      await work.outbox.add({ topic: 'orders.opened', key: 'orders', body: key })
      await work.outbox.add({ topic: 'orders.counted', body: key })
      return key
    })
  await Promise.all(many(12, (n) => send(`k-${n % 4}`)))
  await send('k-0')
  ground.relay()
  await ground.drained()
  const bodies = (topic: string) => desk.taken.filter((message) => message.topic === topic).map(({ body }) => body)
  for (const topic of ['orders.opened', 'orders.counted']) {
    assert.deepEqual(bodies(topic).toSorted(), ['"k-0"', '"k-1"', '"k-2"', '"k-3"'])
  }
  assert.deepEqual(sequences(desk.taken).get('orders'), [1, 2, 3, 4])
  await once.stop()
})

onEveryPlace('the first command after a start need not wait for the tables', async (place) => {
  const store = sqlStore(place.store)
  const once = quietLedger(store)
  const outbox = createOutbox({ ledger: once })
  const open = once.operation<number>({ name: 'open', effect: 'transaction' })
  await open.run(who('a'), 1, async (work) => work.outbox.add({ topic: 'orders.opened', body: 1 }))
  assert.equal((await outbox.status()).pending, 1)
  await once.stop()
})

onOutbox('what cannot be published is refused by name, and spoils nothing', async (ground) => {
  const { outbox, inTx } = ground
  const good = { topic: 'orders.paid', body: 1 }
  const cyclic: Record<string, unknown> = {}
  cyclic['self'] = cyclic
  const bad: readonly [string, Record<string, unknown>][] = [
    ['topic', { topic: '' }],
    ['topic', { topic: 'a b' }],
    ['topic', { topic: 'a..b' }],
    ['topic', { topic: 'orders.>' }],
    ['topic', { topic: 'x'.repeat(201) }],
    ['key', { key: ' ' }],
    ['key', { key: 'a\0b' }],
    ['key', { key: '\ud800' }],
    ['key', { key: 'ü'.repeat(300) }],
    ['id', { id: '' }],
    ['id', { id: 'a\nb' }],
    ['id', { id: 'x'.repeat(256) }],
    ['body', { body: undefined }],
    ['body', { body: 1n }],
    ['body', { body: cyclic }],
    ['body', { body: 'x'.repeat(512 * 1_024) }],
    ['headers', { headers: { 'a b': 'x' } }],
    ['headers', { headers: { a: 1 } }],
    ['headers', { headers: { a: 'x\r\ny' } }],
    ['headers', { headers: { 'Nats-Msg-Id': 'x' } }],
    ['headers', { headers: { 'onceonly-key': 'x' } }],
    ['headers', { headers: { a: 'x'.repeat(8 * 1_024) } }],
  ]
  await inTx(async (tx) => {
    for (const [part, change] of bad) {
      await assert.rejects(
        outbox.add(tx, { ...good, ...change } as never),
        (error) => isOnceError(error, 'bad_message') && error.details['part'] === part,
        JSON.stringify(Object.keys(change)),
      )
    }
    await outbox.add(tx, good)
  })
  assert.equal(await ground.pending(), 1)
})

onOutbox('the largest message that is allowed goes through', async (ground) => {
  const body = 'x'.repeat(512 * 1_024 - 2)
  for (let n = 0; n < 12; n++) await ground.add({ topic: 'x'.repeat(200), key: 'k'.repeat(512), body })
  ground.relay()
  await ground.drained()
  assert.equal(ground.desk.taken.length, 12)
  assert.ok(ground.desk.taken.every((message) => message.body.length === body.length + 2))
})

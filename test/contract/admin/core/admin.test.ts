import assert from 'node:assert/strict'
import { createLedger, final, type Ledger, type SqlStore, type SqlTx } from 'onceonly'
import { createAdmin } from 'onceonly/admin'
import { createCommands } from 'onceonly/admin/commands'
import { createInbox } from 'onceonly/inbox'
import { createOutbox } from 'onceonly/outbox'
import { createEngine, defineQueue, defineRun, schedule } from 'onceonly/run'
import { createSqlOrderLog, createSqlRoomLog } from 'onceonly/stream/server'
import { handled, onEveryStage, started } from '../../../support/events/saga/stage.ts'
import { onEveryStore, onSqlStores } from '../../../support/ledger/worlds.ts'

const actor = { by: 'ada', via: 'test' }
const who = { tenant: 'acme', caller: 'shop' }
const message = { topic: 'paid', key: null, sequence: null, headers: {}, deliveries: 1 }

onEveryStore('the operator sees and does the same on every store', async ({ world, once: ledger }) => {
  const { store } = world
  const admin = createAdmin({ store, ledger })
  const commands = createCommands({ admin })
  const caller = { role: 'operator', actor } as const
  assert.deepEqual((await admin.status()).states.succeeded, 0, 'an empty store is no error')
  const pay = ledger.operation<number>({ name: 'pay', effect: 'external', leaseMs: 1_000 })
  await pay.execute({ ...who, key: 'unknown' }, 1, () => Promise.reject(new Error('cut')))
  await pay.run({ ...who, key: 'done' }, 1, async () => 'paid')
  await pay.execute({ ...who, key: 'done' }, 2, async () => 'never')
  const held = await pay.claim({ ...who, key: 'held' }, 1)
  assert.equal(held.kind, 'first_attempt')

  // What there is, and why.
  assert.equal((await admin.standing()).unknownWaiting, 1)
  const identity = { ...who, operation: 'pay', key: 'unknown' }
  const explained = await admin.inspect(identity)
  assert.equal(explained?.answers.length, 10)
  assert.deepEqual(
    explained.answers.filter(({ alarming }) => alarming).map(({ topic }) => topic),
    ['state'],
  )
  assert.equal(await admin.inspect({ ...identity, key: 'never' }), null)
  const [found] = (await admin.search('done')).rows
  assert.equal(found?.state, 'succeeded')
  assert.equal((await admin.search(found?.id ?? '')).rows[0]?.identity.key, 'done', 'by the id of the record, too')
  assert.equal(await admin.answer(found?.id ?? ''), '"paid"')

  // Actions of an operator, under the fence that was shown.
  await assert.rejects(
    commands.run('resolve', { ...identity, to: 'rerun', ifFence: 999 }, caller),
    /changed since you read it/,
  )
  await commands.run('resolve', { ...identity, to: 'rerun' }, caller)
  await commands.run('release', { ...identity, key: 'held' }, caller)
  assert.equal((await admin.inspect({ ...identity, key: 'held' }))?.record.state, 'vacant', 'its trace is still shown')
  assert.equal((await admin.search('held')).rows[0]?.state, 'vacant', 'also by its key alone')
  await admin.busiest()
  const { rows: refused } = await admin.conflicts({ limit: 1 })
  assert.deepEqual(
    refused.map(({ identity: { key }, conflicts }) => [key, conflicts]),
    [['done', 1]],
  )
  const payload = (await admin.inspect({ ...identity, key: 'done' }))?.answers.find(({ topic }) => topic === 'payload')
  assert.match(payload?.answer ?? '', /1 attempt was refused/)
  await commands.run('forget', { ...identity, key: 'done' }, caller)
  assert.equal(await pay.run({ ...who, key: 'done' }, 2, async () => 'again'), 'again')
  if (admin.audit === null) return
  const again = await admin.inspect({ ...identity, key: 'done' })
  assert.equal(again?.answers.find(({ topic }) => topic === 'provider')?.alarming, true, 'new effect keys are reported')
  const { rows } = await admin.audit.list({})
  assert.deepEqual(
    rows.map(({ what, result, by }) => `${by} ${what} ${result}`),
    ['ada forget done', 'ada release done', 'ada resolve done', 'ada resolve refused'],
  )
  const sql = store.sql
  for (const text of ['DELETE FROM', 'TRUNCATE', 'UPDATE'].slice(0, sql?.dialect.name === 'postgres' ? 3 : 1)) {
    const rest = text === 'UPDATE' ? " SET actor = 'intruder'" : ''
    await assert.rejects(async () => sql?.query(`${text} onceonly_operator_audit${rest}`), /only appended to/)
  }
  for (const { verdict, found: what } of await admin.doctor()) assert.notEqual(verdict, 'danger', what)
})

onSqlStores('events, sagas and runs are seen by their tables alone', async ({ world, once: ledger }) => {
  const store = world.store as SqlStore
  const admin = createAdmin({ store, ledger })
  const { events, sagas, runs } = admin
  if (store.sql === undefined || events === null || sagas === null || runs === null) return
  assert.deepEqual([await events.outboxStatus(), await events.consumers(), await sagas.list()], [null, [], []])
  assert.deepEqual(await runs.list({}), { runs: [], cursor: null }, 'to look makes no tables')
  const rooms = await admin.migrate()
  for (const room of ['outbox', 'inbox', 'saga', 'run', 'stream', 'operate']) assert.ok(rooms.has(room), room)

  const outbox = createOutbox({ ledger })
  await outbox.prepare()
  const inbox = createInbox({ ledger: ledger as Ledger<SqlTx>, consumer: 'billing', background: false })
  const received = { ...message, id: 'm-1', body: '{"amount":7}' }
  const parked = await inbox.receive(received, () => Promise.reject(final(new Error('cannot be handled'))))
  assert.equal(parked.kind, 'parked')
  assert.deepEqual((await admin.standing()).inboxDeadLetters, { billing: 1 })
  const failed = await inbox.receive({ ...received, id: 'm-2' }, () => Promise.reject(new Error('not now')))
  assert.equal(failed.kind, 'later')
  const [card] = await events.consumers()
  assert.deepEqual([card?.deadLetters, card?.failing], [1, 1], 'what was given up is not tried again')
  const [letter] = (await events.inboxDead('billing')).rows
  const letters = [letter?.letter ?? '']
  assert.equal((await events.inboxRedrive('billing', letters, true))[0]?.result, 'publish')
  assert.equal((await events.inboxRedrive('billing', letters, false))[0]?.result, 'published')
  assert.equal((await events.outboxStatus())?.pending, 1)
  const redriven = async () => {
    const text = 'SELECT id, body, headers FROM onceonly_outbox_rows ORDER BY position DESC LIMIT 1'
    const [row] = await store.sql.query<{ id: string; body: string; headers: string }>(text)
    assert.deepEqual([row?.id, row?.body], ['m-1', received.body], 'under its own id, with its own bytes')
    return { ...received, headers: JSON.parse(row?.headers ?? '{}') as Record<string, string> }
  }
  // Another consumer of the topic had handled it long ago, and remembers nothing.
  const shipping = createInbox({ ledger: ledger as Ledger<SqlTx>, consumer: 'shipping', background: false })
  const first = await redriven()
  assert.equal((await shipping.receive(first, () => assert.fail('it is not theirs'))).kind, 'not_ours')
  await shipping.stop()
  // Given up once more, it can be redriven once more, and is another message to brokers that remember ids.
  const refused = await inbox.receive(first, () => Promise.reject(final(new Error('still not handled'))))
  assert.equal(refused.kind, 'parked')
  assert.equal((await events.inboxRedrive('billing', letters, false))[0]?.result, 'published')
  const again = await redriven()
  assert.notDeepEqual(again.headers, first.headers)
  assert.equal((await inbox.receive(again, async () => {})).kind, 'handled', 'and it is handled when it comes')
  await inbox.stop()

  const welcome = defineRun('welcome', async (run) => await run.step('one', async () => 1))
  const hourly = schedule('hourly', { run: welcome, input: null, cron: '0 * * * *', catchUp: 'none' })
  const mail = defineQueue('mail', { concurrency: 1 })
  const given = { ledger, runs: [welcome], schedules: [hourly], queues: [mail] }
  const engine = await createEngine(given)
  await (await engine.start(welcome, { runId: 'r-1', input: null })).result()
  await engine.stop()
  assert.equal((await runs.get('r-1')).state, 'succeeded')
  const { runsStuck, runsUnknown } = await admin.standing()
  assert.deepEqual([runsStuck, runsUnknown], [0, 0])
  // No process works: what is enqueued waits, and a tick passes.
  const asking = await createEngine({ ...given, work: false })
  for (const delayMs of [0, 0, 10 * 3_600_000]) await asking.enqueue(welcome, { queue: mail, input: null, delayMs })
  await world.advance(2 * 3_600_000)
  const { queues = {}, schedules = {} } = await admin.standing()
  const { oldestMs = 0, ...counts } = queues['mail'] ?? {}
  assert.deepEqual(counts, { waiting: 2, blocked: 0, delayed: 1, running: 0 })
  assert.ok(oldestMs >= 2 * 3_600_000, `${oldestMs}`)
  const late = schedules['hourly']?.lateMs ?? 0
  assert.ok(late >= 3_600_000 && late <= oldestMs, `${late}`)
  await asking.schedules.pause('hourly')
  assert.deepEqual((await admin.standing()).schedules, {})
  await asking.stop()
})

onSqlStores(
  'rooms of streams show which region lags, and how far the final order is',
  async ({ world, once: ledger }) => {
    const store = world.store as SqlStore
    const { streams } = createAdmin({ store, ledger })
    assert.ok(streams !== null)
    assert.deepEqual(await streams.rooms(), { rows: [], cursor: null }, 'to look makes no tables')
    const [north, south] = ['north', 'south'].map((region) => createSqlRoomLog({ store, region }))
    const order = createSqlOrderLog({ store })
    const who = { client: 'ada', epoch: 1, generation: 1 }
    await north?.enter('hall', { ...who, instance: 'one' })
    const send = { ...who, seen: {}, replyTo: null, body: 'hello', digest: 'd' }
    const sends = [1, 2, 3].map((cseq) => ({ ...send, cseq }))
    const stored = (await north?.write('hall', { merged: [], sends }))?.stored ?? []
    await south?.write('hall', { merged: stored.slice(0, 1), sends: [] })
    await north?.open('yard')
    const log = stored[0]?.log ?? ''
    const held = await order.claim('hall', 'north', 60_000)
    const fence = held.kind === 'held' ? held.fence : 0
    await order.append('hall', { fence, identities: sends.slice(0, 2), position: { [log]: 2 } })

    const hall = await streams.get('hall')
    assert.deepEqual([hall?.head, hall?.final], [3, { head: 2, behind: 1, holder: 'north' }])
    assert.deepEqual(
      hall?.regions.map(({ region, position, behind, clients }) => ({ region, position, behind, clients })),
      [
        { region: 'north', position: { [log]: 3 }, behind: 0, clients: 1 },
        { region: 'south', position: { [log]: 1 }, behind: 2, clients: 0 },
      ],
    )
    const first = await streams.rooms({ limit: 1 })
    const second = await streams.rooms({ limit: 1, cursor: first.cursor })
    assert.deepEqual([first.rows[0], second.rows[0]?.room, second.rows[0]?.final], [hall, 'yard', null])
    assert.equal(await streams.get('nowhere'), null)
  },
)

onEveryStage('instances of sagas and what happened to them', async ({ store, replica }) => {
  const one = replica()
  await handled(one, started('s1'), started('s2'))
  const ledger = createLedger({ store, background: false })
  const { sagas } = createAdmin({ store, ledger })
  const [card] = (await sagas?.list()) ?? []
  assert.deepEqual([card?.saga, card?.states], ['imports', { Uploading: 2 }])
  const first = await sagas?.instances('imports', { limit: 1 })
  const second = await sagas?.instances('imports', { limit: 1, cursor: first?.cursor ?? null })
  assert.deepEqual(
    new Set([first?.rows[0]?.id, second?.rows[0]?.id]),
    new Set(['s1', 's2']),
    'the cursor leads to the next page',
  )
  assert.deepEqual((await sagas?.instances('imports', { state: 'Done' }))?.rows, [])
  const instance = await sagas?.get('imports', 's1')
  assert.deepEqual(
    instance?.history.map(({ did }) => did),
    ['handled'],
  )
  assert.equal(await sagas?.get('imports', 'unknown'), null)
  await ledger.stop()
})

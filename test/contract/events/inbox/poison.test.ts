import assert from 'node:assert/strict'
import type { SqlTx } from 'onceonly'
import { DAY, final, HOUR, isOnceError, limits, notDone } from 'onceonly'
import { acknowledgementOf } from 'onceonly/inbox'
import type { Stage } from '../../../support/events/inbox/stage.ts'
import { eventsOf, messageOf, onInbox } from '../../../support/events/inbox/stage.ts'

/** Delivers a message that always fails until it is parked; the store's clock passes every delay. */
async function failUntilParked({ inbox, advance }: Stage, id: string, body = '{"n":1}'): Promise<number> {
  for (let deliveries = 1; deliveries < 50; deliveries++) {
    const receipt = await inbox.receive(messageOf(id, { deliveries, body }), () => {
      throw new Error(`broken ${deliveries}`)
    })
    if (receipt.kind === 'parked') return deliveries
    assert.ok(receipt.kind === 'later')
    await advance(receipt.delayMs)
  }
  return assert.fail('it was never parked')
}

onInbox(
  'a message that always fails is parked with its reason, and nothing of it stays',
  { maxFailures: 4 },
  async (stage) => {
    const { inbox, events } = stage
    assert.equal(await failUntilParked(stage, 'm1'), 4)
    const { rows, cursor } = await inbox.deadLetters.list()
    assert.equal(cursor, null)
    const [letter] = rows
    assert.ok(letter !== undefined && rows.length === 1)
    assert.deepEqual([letter.reason, letter.failure?.message, letter.failures], ['failed', 'broken 4', 4])
    assert.deepEqual(letter.message, messageOf('m1', { deliveries: 4, body: '{"n":1}' }))
    assert.ok(letter.parkedAt > 0)
    const copy = await inbox.receive(messageOf('m1', { deliveries: 5, body: '{"n":1}' }), () => assert.fail('it ran'))
    assert.ok(copy.kind === 'duplicate')
    assert.deepEqual(copy.first.settled, { kind: 'parked', reason: 'failed' })
    assert.deepEqual(acknowledgementOf(copy), { kind: 'done' })
    const delays = eventsOf(events, 'failed').map(({ retryAfterMs }) => retryAfterMs)
    assert.equal(delays.length, 3)
    assert.ok((delays[2] as number) > (delays[0] as number), 'it waits ever longer')
    const explained = await inbox.explain('m1')
    assert.deepEqual([explained.deadLetter?.reason, explained.failures], ['failed', 4])
  },
)

onInbox('a dead letter is previewed, then redriven, and runs once', { maxFailures: 2 }, async (stage) => {
  const { inbox, events, write, written } = stage
  for (const id of ['m1', 'm2']) await failUntilParked(stage, id)
  const preview = await inbox.deadLetters.redrive({ topic: 'orders' }, { preview: true })
  assert.deepEqual(preview.map(({ id, reason, result }) => `${id} ${reason} ${result.kind}`).toSorted(), [
    'm1 failed preview',
    'm2 failed preview',
  ])
  assert.equal(await inbox.deadLetters.count(), 2)
  const keys = new Set<string>()
  const [one] = await inbox.deadLetters.redrive(
    { letters: ['m1'] },
    {
      by: 'ann',
      effect: async (_, { tx, effectKey }) => {
        keys.add(effectKey)
        await write(tx, 'm1')
      },
    },
  )
  assert.deepEqual(one?.result, { kind: 'ran', receipt: { kind: 'handled', id: 'm1' } })
  assert.deepEqual(await written(), ['m1'])
  const copy = await inbox.receive(messageOf('m1', { body: '{"n":1}' }), () => assert.fail('it ran again'))
  assert.ok(copy.kind === 'duplicate')
  assert.deepEqual(copy.first.settled, { kind: 'handled' })
  // Without an effect it is freed, and runs when it is delivered again.
  const [two] = await inbox.deadLetters.redrive({ letters: ['m2'] })
  assert.deepEqual(two?.result, { kind: 'freed' })
  assert.equal((await inbox.receive(messageOf('m2', { body: '{"n":1}', deliveries: 9 }), () => {})).kind, 'handled')
  assert.equal(await inbox.deadLetters.count(), 0)
  assert.deepEqual(
    eventsOf(events, 'redriven').map(({ id, by }) => [id, by]),
    [
      ['m1', 'ann'],
      ['m2', 'operator'],
    ],
  )
})

onInbox('a redriven message that fails again is parked again', { maxFailures: 1 }, async (stage) => {
  const { inbox } = stage
  await failUntilParked(stage, 'm1')
  const [redriven] = await inbox.deadLetters.redrive(
    {},
    {
      effect: () => {
        throw final(new Error('still broken'))
      },
    },
  )
  assert.ok(redriven?.result.kind === 'ran' && redriven.result.receipt.kind === 'parked')
  const { rows } = await inbox.deadLetters.list()
  assert.deepEqual(
    rows.map(({ reason, failure }) => [reason, failure?.message]),
    [['final', 'still broken']],
  )
})

onInbox(
  'a copy that was handled after all removes the dead letter',
  { maxFailures: 1, windowMs: 1 * HOUR },
  async (stage) => {
    const { inbox, second, advance } = stage
    await failUntilParked(stage, 'm1')
    // Past the window the record of the parked message is gone, and a late copy is handled.
    await advance(2 * HOUR)
    assert.equal((await (await second()).receive(messageOf('m1', { body: '{"n":1}' }), () => {})).kind, 'handled')
    assert.equal(await inbox.deadLetters.count(), 0)
    assert.deepEqual(await inbox.deadLetters.redrive({}, { effect: () => assert.fail('it ran again') }), [])
  },
)

onInbox('purging previews, removes, and lets no copy run', { maxFailures: 1 }, async (stage) => {
  const { inbox, events } = stage
  for (const id of ['m1', 'm2', 'm3']) await failUntilParked(stage, id)
  assert.equal((await inbox.deadLetters.purge({ reason: 'failed' }, { preview: true })).length, 3)
  assert.equal(await inbox.deadLetters.count({ reason: 'failed' }), 3)
  const gone = await inbox.deadLetters.purge({ letters: ['m1', 'm3'] }, { by: 'ann' })
  assert.deepEqual(gone.map(({ letter }) => letter).toSorted(), ['m1', 'm3'])
  const { rows } = await inbox.deadLetters.list()
  assert.deepEqual(
    rows.map(({ letter }) => letter),
    ['m2'],
  )
  assert.deepEqual(eventsOf(events, 'purged'), [{ kind: 'purged', consumer: 'billing', letters: 2, by: 'ann' }])
  const copy = await inbox.receive(messageOf('m1', { body: '{"n":1}' }), () => assert.fail('it ran'))
  assert.equal(copy.kind, 'duplicate')
})

onInbox('dead letters are listed newest first, page by page', { maxFailures: 1 }, async (stage) => {
  const { inbox, advance } = stage
  const ids = Array.from({ length: 7 }, (_, n) => `m${n}`)
  for (const id of ids) {
    await failUntilParked(stage, id)
    await advance(10)
  }
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const page = await inbox.deadLetters.list({}, { limit: 3, cursor })
    seen.push(...page.rows.map(({ message }) => message.id))
    cursor = page.cursor
  } while (cursor !== null)
  assert.deepEqual(seen, ids.toReversed())
  // Redriven oldest first, as they would have been handled; what fails again goes behind the others.
  const ran: string[] = []
  const effect = (_: unknown, { message }: { message: { id: string } }) => {
    ran.push(message.id)
    throw new Error('again')
  }
  for (let rounds = 0; rounds < 2; rounds++) await inbox.deadLetters.redrive({}, { limit: 2, effect })
  assert.deepEqual(ran, ['m0', 'm1', 'm2', 'm3'])
  for (const limit of [0, 1.5, Number.NaN]) {
    await assert.rejects(inbox.deadLetters.list({}, { limit }), (error) => isOnceError(error, 'bad_option'))
  }
})

onInbox('what cannot be read, or has no id, is parked and never reaches the effect', {}, async ({ inbox }) => {
  const never = () => assert.fail('it ran')
  const body = '{"half": \0 "\ud800'
  const broken = await inbox.receive(messageOf('m1', { body, topic: 'a\0b', headers: { x: '\0' } }), never)
  assert.ok(broken.kind === 'parked' && broken.reason === 'unreadable')
  assert.equal(broken.failure?.name, 'SyntaxError')
  const { rows } = await inbox.deadLetters.list({ topic: 'a\0b' })
  assert.deepEqual(rows[0]?.message, messageOf('m1', { body, topic: 'a\0b', headers: { x: '\0' } }))
  for (const id of ['', '  ']) {
    const unnamed = await inbox.receive(messageOf(id, { body: `{"n":"${id}"}` }), never)
    assert.ok(unnamed.kind === 'parked' && unnamed.reason === 'no_id')
  }
  assert.equal(await inbox.deadLetters.count({ reason: 'no_id' }), 2)
  assert.equal((await inbox.receive(messageOf('', { body: '{"n":""}' }), never)).kind, 'duplicate')
})

onInbox(
  'an effect sets the time of its retry; failures past the window are forgotten',
  {
    maxFailures: 2,
    windowMs: 1 * DAY,
  },
  async ({ inbox, advance }) => {
    const fail = () =>
      inbox.receive(messageOf('m1'), () => {
        throw notDone(new Error('come back'), { retryAfterMs: 77_000 })
      })
    const first = await fail()
    assert.ok(first.kind === 'later' && first.counted && first.delayMs === 77_000)
    await advance(1 * DAY + 1)
    assert.equal((await fail()).kind, 'later')
    assert.equal((await fail()).kind, 'parked')
  },
)

onInbox('failures past the window are swept', { windowMs: 1 * DAY }, async ({ inbox, store, advance }) => {
  const fail = (id: string) =>
    inbox.receive(messageOf(id), () => {
      throw new Error('no')
    })
  await fail('old')
  await advance(1 * DAY)
  await fail('young')
  assert.equal(await inbox.sweep(), 1)
  const left = await store.sql.query('select message from onceonly_inbox_failures')
  assert.deepEqual(
    left.map(({ message }) => message),
    ['young'],
  )
})

onInbox('suspects are tried one at a time while other messages continue', {}, async ({ inbox, store }) => {
  await inbox.sweep()
  const suspects = ['s1', 's2', 's3']
  for (const id of suspects) {
    await store.sql.query(
      `insert into onceonly_inbox_failures (consumer, message, failures, unfinished, retry_at, expires_at)
         values ('billing', ?, 0, 1, 0, ?)`,
      [id, Date.now() + 1 * DAY],
    )
  }
  let under = 0
  let most = 0
  const take = (id: string) =>
    inbox.receive(messageOf(id, { deliveries: 3 }), async (_, { tx }) => {
      most = Math.max(most, ++under)
      await tx.query('select 1')
      under--
    })
  const receipts = await Promise.all(suspects.map(take))
  assert.deepEqual(
    receipts.map(({ kind }) => kind),
    ['handled', 'handled', 'handled'],
  )
  assert.equal(most, 1)
})

onInbox('a copy that began after the clock was read has not vanished', {}, async ({ inbox, store }) => {
  await inbox.sweep()
  const windowMs = 7 * DAY
  // Their processes wrote this between this delivery's look at the clock and its look at the row.
  const touchedAt = Date.now() + 20_000
  await store.sql.query(
    `insert into onceonly_inbox_failures (consumer, message, failures, unfinished, retry_at, expires_at)
       values ('billing', 'm', 0, 5, 0, ?)`,
    [touchedAt + windowMs],
  )
  const receipt = await inbox.receive(messageOf('m', { deliveries: 2 }), () => assert.fail('it ran'))
  assert.ok(receipt.kind === 'later' && !receipt.counted, receipt.kind)
  assert.equal(await inbox.deadLetters.count(), 0)
})

onInbox('copies at once, in several processes, have not vanished: none of them is given up', {}, async (stage) => {
  const inboxes = [stage.inbox, await stage.second(), await stage.second(), await stage.second(), await stage.second()]
  const begun = Promise.withResolvers<void>()
  let runs = 0
  const effect = async (_body: unknown, { tx }: { tx: SqlTx }) => {
    const run = ++runs
    begun.resolve()
    await stage.write(tx, 'once')
    // Only so that, most of the time, all the others have begun when the message is free for a moment.
    await new Promise((resolve) => void setTimeout(resolve, 300))
    if (run === 1) throw new Error('the first one fails')
  }
  const copy = messageOf('m', { deliveries: 2 })
  const first = stage.inbox.receive(copy, effect)
  await begun.promise
  const others = Array.from({ length: 9 }, (_, at) => inboxes[at % inboxes.length]?.receive(copy, effect))
  const receipts = await Promise.all([first, ...others])
  assert.deepEqual(
    receipts.filter((receipt) => receipt?.kind === 'parked' || receipt?.kind === 'conflict'),
    [],
  )
  await stage.advance(2 * limits.inboxVanishedMs)
  const last = await stage.inbox.receive(messageOf('m', { deliveries: 3 }), effect)
  assert.ok(last.kind === 'handled' || (last.kind === 'duplicate' && last.first.settled.kind === 'handled'), last.kind)
  assert.deepEqual(await stage.written(), ['once'])
  const { unfinished, deadLetter } = await stage.inbox.explain('m')
  assert.deepEqual([unfinished, deadLetter], [0, null])
})

onInbox(
  'more messages at once than there are connections do not wait for each other',
  {
    ordered: true,
    intent: (body) => (body as { order: string }).order,
    maxFailures: 1,
  },
  async ({ inbox, events }) => {
    const ids = Array.from({ length: 60 }, (_, n) => n)
    const receipts = await Promise.all(
      ids.map((n) => {
        const body = n % 6 === 0 ? '{' : JSON.stringify({ order: `o${n}` })
        const message = messageOf(`m${n}`, { body, deliveries: 2, key: `k${n}`, sequence: 1 + (n % 2) })
        return inbox.receive(message, () => {
          if (n % 3 === 0) throw new Error('no')
        })
      }),
    )
    const count = (kind: string) => receipts.filter((receipt) => receipt.kind === kind).length
    // Even numbers come first in their line: of these a third is broken or fails, and the odd ones wait.
    assert.deepEqual([count('waiting'), count('parked'), count('handled')], [30, 10, 20])
    assert.deepEqual(eventsOf(events, 'postponed'), [])
  },
)

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Ledger, SqlTx } from 'onceonly'
import { createLedger, isOnceError } from 'onceonly'
import type { Place } from '../../support/place.ts'
import { onPlace, sqlOf, who } from '../../support/place.ts'

const PAIRS = 5
const ROUNDS = 6

onPlace('postgres', 'deadlocks between effects are settled by running one of them again', async (place) => {
  const sql = sqlOf(place.store)
  if (place.address.kind === 'postgres') {
    const database = new URL(place.address.url).pathname.slice(1)
    // A second each is what the server waits before it looks for a circle; the test has many of them to go through.
    await sql.query(`alter database ${database} set deadlock_timeout = '30ms'`)
  }
  await sql.query('create table account (id integer primary key, balance integer not null)')
  await sql.query(`insert into account select n, 0 from generate_series(0, ${2 * PAIRS - 1}) as n`)
  const ledgers = [0, 1].map(() => createLedger({ store: place.another(), background: false }))
  const operations = ledgers.map((once) => once.operation({ name: 'transfer', effect: 'transaction' }))
  let effects = 0
  const meetings = new Map<string, { come: number; both: PromiseWithResolvers<void> }>()
  /** Both sides have their first row, and only then want the second; a second run finds both already there. */
  const meet = (where: string): Promise<void> => {
    const meeting = meetings.get(where) ?? { come: 0, both: Promise.withResolvers<void>() }
    meetings.set(where, meeting)
    if (++meeting.come === 2) meeting.both.resolve()
    return meeting.both.promise
  }
  const transfer = (side: number, pair: number, round: number) =>
    operations[side]?.execute(who(`${side}-${pair}-${round}`), round, async ({ tx }) => {
      effects++
      const rows = [2 * pair, 2 * pair + 1]
      for (const id of side === 0 ? rows : rows.toReversed()) {
        await tx.query('update account set balance = balance + 1 where id = ?', [id])
        await meet(`${pair}-${round}`)
      }
      return 'done'
    })
  await Promise.all(
    Array.from({ length: PAIRS }, async (_, pair) => {
      for (let round = 0; round < ROUNDS; round++) {
        const answers = await Promise.all([transfer(0, pair, round), transfer(1, pair, round)])
        for (const answer of answers) assert.deepEqual(answer, { kind: 'executed', value: 'done' })
      }
    }),
  )
  const rows = await sql.query<{ balance: unknown }>('select balance from account')
  for (const { balance } of rows) assert.equal(Number(balance), 2 * ROUNDS)
  // Only a side that was rolled back runs again: without that the test would prove nothing.
  assert.ok(effects > 2 * PAIRS * ROUNDS, `${effects} effects`)
  for (const once of ledgers) await once.stop()
})

/** An operation and a way to make the server raise an error of our choice. */
async function raising(place: Place): Promise<{ once: Ledger<SqlTx>; raise(tx: SqlTx, code: string): Promise<void> }> {
  await sqlOf(place.store).query(
    `create function raise_error(code text) returns void language plpgsql as
     $body$ begin raise exception 'raised on purpose' using errcode = code; end $body$`,
  )
  const once = createLedger({ store: place.store, background: false })
  return { once, raise: async (tx, code) => void (await tx.query('select raise_error(?)', [code])) }
}

const codes = { serialisation: '40001', deadlock: '40P01', lock: '55P03' }

onPlace('postgres', 'what the server undid for its own reasons is run again, and never seen', async (place) => {
  const { once, raise } = await raising(place)
  const operation = once.operation({ name: 'op', effect: 'transaction' })
  for (const [name, code] of Object.entries(codes)) {
    let effects = 0
    const answer = await operation.execute(who(name), 1, async ({ tx, attemptNumber }) => {
      await tx.query('insert into business (key, value) values (?, ?)', [name, `run ${++effects}`])
      // Query builders wrap errors; what the server said is still in there.
      if (effects === 1) await raise(tx, code)
      if (effects === 2)
        await raise(tx, code).catch((cause: unknown) => Promise.reject(new Error('wrapped', { cause })))
      return attemptNumber
    })
    assert.deepEqual(answer, { kind: 'executed', value: 1 }, name)
    assert.equal(effects, 3)
  }
  const rows = (await place.business()).map(({ key, value }) => `${key} ${value}`)
  assert.deepEqual(rows, ['deadlock run 3', 'lock run 3', 'serialisation run 3'])
  await once.stop()
})

onPlace('postgres', 'a conflict that never ends is reported as a typed, retryable error', async (place) => {
  const { once, raise } = await raising(place)
  const operation = once.operation({ name: 'op', effect: 'transaction' })
  const asked = operation.run(who('k'), 1, ({ tx }) => raise(tx, codes.serialisation))
  await assert.rejects(asked, (error) => {
    assert.ok(isOnceError(error, 'store_busy'))
    assert.deepEqual([error.retryable, error.applied], [true, 'no'])
    return true
  })
  assert.equal(await once.get({ ...who('k'), operation: 'op' }), null)
  await once.stop()
})

onPlace('postgres', 'a conflict that the server finds only at COMMIT is run again, too', async (place) => {
  const sql = sqlOf(place.store)
  const once = createLedger({ store: place.store, background: false })
  const operation = once.operation({ name: 'op', effect: 'transaction' })
  await sql.query(
    `create function late_error() returns trigger language plpgsql as
     $body$ begin raise exception 'at the end' using errcode = new.value; end $body$`,
  )
  await sql.query(
    `create constraint trigger late after insert on business deferrable initially deferred
     for each row when (new.value <> 'fine') execute function late_error()`,
  )
  let effects = 0
  const answer = await operation.execute(who('k'), 1, async ({ tx }) => {
    const value = ++effects === 1 ? codes.serialisation : 'fine'
    await tx.query('insert into business (key, value) values (?, ?)', ['k', value])
  })
  assert.equal(answer.kind, 'executed')
  assert.equal(effects, 2)
  // What the user's own constraint says at the end is the user's to read, and nothing stays.
  const violation = operation.run(who('v'), 1, ({ tx }) =>
    tx.query('insert into business (key, value) values (?, ?)', ['v', '23505']),
  )
  await assert.rejects(violation, /at the end/)
  assert.equal(await once.get({ ...who('v'), operation: 'op' }), null)
  assert.deepEqual(await place.business(), [{ key: 'k', value: 'fine' }])
  await once.stop()
})

onPlace('postgres', 'an SQL error that the effect swallowed is reported, one in a savepoint is not', async (place) => {
  const { once } = await raising(place)
  await sqlOf(place.store).query('create unique index business_key on business (key)')
  const operation = once.operation({ name: 'op', effect: 'transaction' })
  const insert = (tx: SqlTx, value: string) =>
    tx.query('insert into business (key, value) values (?, ?)', ['taken', value])
  await operation.run(who('first'), 1, async ({ tx }) => void (await insert(tx, 'first')))
  const swallowed = operation.run(who('swallows'), 1, async ({ tx }) => {
    await insert(tx, 'second').catch(() => {})
    return 'as if nothing had happened'
  })
  await assert.rejects(swallowed, (error) => isOnceError(error, 'transaction_aborted') && error.applied === 'no')
  assert.equal(await once.get({ ...who('swallows'), operation: 'op' }), null)
  const expected = await operation.execute(who('expects'), 1, async ({ tx }) => {
    const taken = await tx
      .inSavepoint(() => insert(tx, 'third'))
      .then(
        () => false,
        () => true,
      )
    await tx.query('insert into business (key, value) values (?, ?)', ['other', String(taken)])
    return taken
  })
  assert.deepEqual(expected, { kind: 'executed', value: true })
  assert.deepEqual(await place.business(), [
    { key: 'other', value: 'true' },
    { key: 'taken', value: 'first' },
  ])
  await once.stop()
})

for (const whileRunning of ['conflict', { waitMs: 20 }] as const) {
  const policy = JSON.stringify(whileRunning)
  onPlace('postgres', `whileRunning ${policy}: an effect still waits for the rows that it needs`, async (place) => {
    const sql = sqlOf(place.store)
    await sql.query('create table account (id integer primary key, balance integer not null)')
    await sql.query('insert into account values (1, 0)')
    const once = createLedger({ store: place.store, background: false })
    const define = { name: 'op', effect: 'transaction', whileRunning } as const
    const operation = once.operation(define)
    const inside = Promise.withResolvers<void>()
    const add = (tx: SqlTx) => tx.query('update account set balance = balance + 1 where id = 1')
    const first = operation.run(who('first'), 1, async ({ tx }) => {
      await add(tx)
      inside.resolve()
      // A chance for the second to wait; it ends the same when it comes later.
      await sleep(500)
    })
    await inside.promise
    let effects = 0
    const second = await operation.execute(who('second'), 1, async ({ tx }) => {
      effects++
      await add(tx)
      return 'added'
    })
    assert.deepEqual(second, { kind: 'executed', value: 'added' })
    assert.equal(effects, 1)
    await first
    await once.stop()
  })
}

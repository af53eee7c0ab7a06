import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import type { LedgerRecord } from 'onceonly'
import { SECOND } from 'onceonly'
import { createGuard } from 'onceonly/guard'
import { recordIdOf } from '../../../src/ledger/core/identity.ts'
import type { OpenPlace, Place } from '../../support/stores/paused/place.ts'
import { openPlace, who } from '../../support/stores/paused/place.ts'
import { type PausedProcess, startPaused } from '../../support/stores/paused/process.ts'

/** Two processes on one store, one of them paused in the middle of a write: what it may do after it resumes. */

const CALL = { timeoutMs: 60_000 }
const LAPSE_MS = 36 * SECOND
const redisUrl = process.env['ONCEONLY_TEST_REDIS_URL']
/** The client of Redis gives up a connection that was silent for seconds; the part is then played again. */
const TRIES = 5

const places: Readonly<Record<Place['kind'], (t: TestContext) => Promise<Place>>> = {
  async sqlite(t) {
    const folder = await mkdtemp(join(tmpdir(), 'onceonly-paused-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    return { kind: 'sqlite', path: join(folder, 'ledger.db') }
  },
  redis: async () => ({ kind: 'redis', url: redisUrl ?? '', prefix: `paused:${process.pid}` }),
}

interface Stage extends OpenPlace {
  readonly kind: Place['kind']
  readonly other: PausedProcess
  readonly op: ReturnType<typeof operationOf>
  record(key: string): Promise<LedgerRecord>
}

const operationOf = ({ ledger }: OpenPlace) =>
  ledger.operation<number>({ name: 'op', effect: 'repeatable', whileRunning: 'conflict' })

let keys = 0

/** Returns the result of the other process; the work runs while it is paused. */
async function whileItStands(
  { other }: Stage,
  part: Parameters<PausedProcess['begin']>[0],
  prepare: (key: string) => Promise<unknown>,
  work: (key: string) => Promise<unknown>,
): Promise<{ readonly key: string; readonly came: string }> {
  for (let tries = 1; ; tries++) {
    const key = `${part} ${++keys}`
    await prepare(key)
    await other.begin(part, key)
    await work(key)
    const came = await other.goOn()
    if (came !== 'store_unavailable' || tries === TRIES) return { key, came }
  }
}

async function lapsed({ op, store }: Stage, key: string): Promise<void> {
  assert.equal((await op.claim(who(key), 1)).kind, 'first_attempt')
  await store.clock.advance(LAPSE_MS, CALL)
}

const proofs: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  async 'of two that take over one lapsed claim, one gets it'(stage) {
    const { op } = stage
    let fence = 0
    const { key, came } = await whileItStands(
      stage,
      'claim',
      (key) => lapsed(stage, key),
      async (key) => {
        const mine = await op.claim(who(key), 1)
        assert.ok(mine.kind === 'reclaimed')
        fence = mine.lease.fence
      },
    )
    assert.equal(came, 'in_progress')
    const record = await stage.record(key)
    assert.ok(record.state === 'in_progress')
    assert.deepEqual([record.fence, record.attempts], [fence, 2])
  },

  async 'a settle that comes after the lease was lost changes nothing'(stage) {
    const { op, store } = stage
    const { key, came } = await whileItStands(
      stage,
      'settle',
      // A claim that was taken over has a history, and is settled the long way.
      (key) => lapsed(stage, key),
      async (key) => {
        await store.clock.advance(LAPSE_MS, CALL)
        assert.equal(await op.run(who(key), 1, () => 'second'), 'second')
      },
    )
    assert.equal(came, 'lease_lost')
    const record = await stage.record(key)
    assert.ok(record.state === 'succeeded' && record.outcome.data === '"second"')
  },

  async 'a guard that was paused forgets no lock that belongs to a later send'(stage) {
    const { ledger } = stage
    const options = { ledger, name: 'mail', onFailed: 'allow', waitMs: 0 } as const
    const guard = createGuard<string>({ ...options, identity: (text) => ['acme', text] })
    const send = (key: string) => guard.send(key, async (attempt) => attempt?.attach({ type: 'mail', id: '2' }))
    const { key, came } = await whileItStands(
      stage,
      'forget',
      async () => undefined,
      async (key) => {
        assert.equal(await guard.release({ message: key }), true)
        assert.equal((await send(key)).kind, 'sent')
      },
    )
    assert.equal(came, 'sent')
    assert.equal((await send(key)).kind, 'duplicate')
  },

  async 'a decision that is written late is made anew, by the time that it is then'(stage) {
    const { op, store } = stage
    const { key, came } = await whileItStands(
      stage,
      'claim',
      async (key) => {
        const claimed = await op.claim(who(key), 1)
        assert.ok('lease' in claimed)
        await claimed.lease.release()
      },
      () => store.clock.advance(LAPSE_MS, CALL),
    )
    assert.equal(came, 'reclaimed')
    const record = await stage.record(key)
    assert.ok(record.state === 'in_progress')
    assert.ok(record.leaseUntil > (await store.clock.now(CALL)), 'a lease that is over before it began')
  },
}

for (const kind of ['sqlite', 'redis'] as const) {
  const skip = kind === 'redis' && redisUrl === undefined && 'no Redis server'
  test(`two processes on ${kind}`, { skip }, async (t) => {
    const place = await places[kind](t)
    const open = openPlace(place)
    const other = startPaused(t, place)
    const stage: Stage = {
      ...open,
      kind,
      other,
      op: operationOf(open),
      async record(key) {
        const { records } = await open.store.claims.read([recordIdOf({ ...who(key), operation: 'op' })], CALL)
        return records[0] ?? assert.fail('there is no record')
      },
    }
    try {
      for (const [title, proof] of Object.entries(proofs)) await t.test(title, () => proof(stage))
    } finally {
      await open.end()
    }
  })
}

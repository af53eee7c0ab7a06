import assert from 'node:assert/strict'
import { MINUTE } from 'onceonly'
import type { Place } from '../../support/place.ts'
import { onEveryPlace } from '../../support/place.ts'
import type { EffectKind } from './command.ts'
import { LEASE_MS } from './command.ts'
import type { Point } from './points.ts'
import { createSuccessors, runToDeath, traceOf } from './successors.ts'

/** The lease and its grace, and a little. */
const LAPSE_MS = LEASE_MS + MINUTE
/** Processes at once: more would only wait for the two cores. */
const AT_ONCE = 3

/** What a crash at a point must leave to the next process. */
interface Expected {
  /** Right after the crash, and once the lease has lapsed. */
  readonly before: 'in_progress' | 'executed' | 'replayed'
  readonly after: 'outcome_unknown' | 'executed' | 'replayed'
  /** Effects of the crashed process, of all processes in the end, and the number of the attempt that ran last. */
  readonly crashed: 0 | 1
  readonly effects: 0 | 1 | 2
  readonly attempt: number
}

const fresh: Expected = { before: 'executed', after: 'replayed', crashed: 0, effects: 1, attempt: 1 }
const settled: Expected = { before: 'replayed', after: 'replayed', crashed: 1, effects: 1, attempt: 1 }
const unknown = (crashed: 0 | 1): Expected => {
  return { before: 'in_progress', after: 'outcome_unknown', crashed, effects: crashed, attempt: 1 }
}
const again = (crashed: 0 | 1): Expected => {
  return { before: 'in_progress', after: 'executed', crashed, effects: (crashed + 1) as 1 | 2, attempt: 2 }
}

const table: Record<EffectKind, Partial<Record<Point, Expected>>> = {
  external: {
    claim_unsent: fresh,
    claim_known: unknown(0),
    effect_before: unknown(0),
    effect_after: unknown(1),
    settle_unsent: unknown(1),
    settle_known: settled,
  },
  // A reservation has not begun, so it may be claimed anew whatever the policy says; one that was started may not.
  reserved: { claim_known: again(0), start_known: unknown(0), effect_after: unknown(1), settle_known: settled },
  repeatable: {
    claim_unsent: fresh,
    claim_known: again(0),
    effect_before: again(0),
    effect_after: again(1),
    settle_unsent: again(1),
    settle_known: settled,
  },
  // Nothing of a transaction is there before its commit, and everything afterwards.
  transaction: {
    claim_unsent: fresh,
    claim_known: fresh,
    effect_before: fresh,
    effect_after: fresh,
    settle_unsent: fresh,
    settle_known: fresh,
    commit_known: settled,
  },
}

interface Case {
  readonly effect: EffectKind
  readonly point: Point
  readonly key: string
  readonly expected: Expected
}

const cases: readonly Case[] = Object.entries(table).flatMap(([effect, rows]) =>
  Object.entries(rows).map(([point, expected]) => {
    return { effect: effect as EffectKind, point: point as Point, key: `${effect}-${point}`, expected }
  }),
)

onEveryPlace('a process killed at a named point leaves what the effect table says', async (place) => {
  // 1. One process per case dies at its point.
  await inTurns(cases, (each) => crash(place, each))
  const trace = await traceOf(place)
  for (const { key, expected } of cases)
    assert.equal(trace.count(key), expected.crashed, `${key}: effects at the crash`)
  // 2. Before the lease has lapsed no other process may run what may be running.
  const next = createSuccessors(place)
  for (const { effect, key, expected } of cases) {
    const [answer] = await next.ask(effect, key, 1)
    assert.equal(answer?.kind, expected.before, `${key}: before the lapse`)
  }
  // 3. Once it has, the policy decides; and however many ask, at most one of them runs the effect.
  await place.advance(LAPSE_MS)
  for (const { effect, key, expected } of cases) {
    const kinds = (await next.ask(effect, key, 4)).map(({ kind }) => kind)
    const others = kinds.filter((kind) => kind !== 'executed')
    assert.equal(kinds.length - others.length, expected.after === 'executed' ? 1 : 0, `${key}: ${kinds}`)
    const fitting = expected.after === 'executed' ? ['in_progress', 'joined', 'replayed'] : [expected.after]
    for (const kind of others) assert.ok(fitting.includes(kind), `${key}: ${kind} after the lapse`)
  }
  // 4. The effects that happened are those that the table allows, all under one effect key, and the record knows.
  const end = await traceOf(place)
  for (const { key, effect, expected } of cases) {
    assert.equal(end.count(key), expected.effects, `${key}: effects in the end`)
    assert.ok(end.effectKeys(key).size <= 1, `${key}: one effect key for every attempt`)
    const view = await next.get(effect, key)
    assert.equal(view?.record.attempts, expected.attempt, `${key}: attempts`)
    assert.equal(view?.record.state, expected.after === 'outcome_unknown' ? 'unknown' : 'succeeded', key)
  }
  await next.end()
})

async function inTurns<T>(all: readonly T[], work: (each: T) => Promise<void>): Promise<void> {
  const waiting = all.values()
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const each of waiting) await work(each)
    }),
  )
}

async function crash(place: Place, { effect, point, key }: Case): Promise<void> {
  const end = await runToDeath(place, { effect, point, key, delayUs: 0 })
  assert.equal(end.signal, 'SIGKILL', `${key}: ${end.complaints}`)
  assert.ok(end.reached, `${key}: died for another reason`)
}

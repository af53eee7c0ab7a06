import assert from 'node:assert/strict'
import { MINUTE } from 'onceonly'
import type { Random } from '../../../src/testing/random.ts'
import type { Place } from '../../support/place.ts'
import type { EffectKind } from './command.ts'
import { LEASE_MS } from './command.ts'
import type { Point } from './points.ts'
import { createSuccessors, runToDeath, traceOf } from './successors.ts'

/** Processes killed while the store works for them, at a random microsecond. */
export interface MomentOptions {
  readonly rounds: number
  readonly atOnce: number
  readonly random: Random
  readonly progress?: (done: number) => void
}

/** What the crashes left: nothing at all, an attempt without an end, or an outcome. */
export type Found = Record<'nothing' | 'running' | 'settled', number>

interface Moment {
  readonly effect: EffectKind
  readonly point: Point
  readonly key: string
  readonly delayUs: number
}

const LAPSE_MS = LEASE_MS + MINUTE
/** Longer than a commit takes on a slow disk, so that kills come before, inside and after it. */
const DELAY_MOST_US = 12_000

const choices: readonly { readonly effect: EffectKind; readonly point: Point }[] = [
  { effect: 'transaction', point: 'commit_sent' },
  { effect: 'external', point: 'claim_sent' },
  { effect: 'transaction', point: 'commit_sent' },
  { effect: 'external', point: 'settle_sent' },
  { effect: 'transaction', point: 'settle_sent' },
  { effect: 'repeatable', point: 'settle_sent' },
]

export async function killAtMoments(place: Place, options: MomentOptions): Promise<Found> {
  const moments = Array.from({ length: options.rounds }, (_, n) => momentOf(n, options.random))
  const waiting = moments.values()
  let done = 0
  await Promise.all(
    Array.from({ length: options.atOnce }, async () => {
      for (const moment of waiting) {
        const end = await runToDeath(place, moment)
        // It may also have been quicker than its killer.
        assert.ok(end.signal === 'SIGKILL' || end.code === 0, `${moment.key}: ${end.complaints}`)
        assert.ok(end.reached, `${moment.key}: died for another reason`)
        options.progress?.(++done)
      }
    }),
  )
  return judge(place, moments)
}

function momentOf(n: number, random: Random): Moment {
  const { effect, point } = choices[n % choices.length] as (typeof choices)[number]
  // Spread evenly over the orders of magnitude: most of the interesting moments are early.
  const delayUs = Math.floor(Math.exp(random.next() * Math.log(DELAY_MOST_US)))
  return { effect, point, key: `${effect}-${point}-${n}-${delayUs}us`, delayUs }
}

async function judge(place: Place, moments: readonly Moment[]): Promise<Found> {
  const found: Found = { nothing: 0, running: 0, settled: 0 }
  const next = createSuccessors(place)
  const crashed = await traceOf(place)
  // 1. What the crash left: effect and record must fit.
  for (const { effect, key } of moments) {
    const state = (await next.get(effect, key))?.record.state ?? null
    const effects = crashed.count(key)
    if (state === null) assert.equal(effects, 0, `${key}: an effect without a record`)
    if (state === 'succeeded') assert.equal(effects, 1, `${key}: an outcome without its effect`)
    if (effect === 'transaction') assert.notEqual(state, 'in_progress', `${key}: half a transaction`)
    assert.ok(effects <= 1, `${key}: ${effects} effects of one process`)
    found[state === null ? 'nothing' : state === 'succeeded' ? 'settled' : 'running']++
  }
  // 2. What the next processes make of it.
  await place.advance(LAPSE_MS)
  for (const { effect, key } of moments) {
    const before = (await next.get(effect, key))?.record.state ?? null
    const answers = await next.ask(effect, key, 3)
    const ran = answers.filter(({ kind }) => kind === 'executed').length
    const mayRun = before === null || (before === 'in_progress' && effect === 'repeatable')
    assert.equal(ran, mayRun ? 1 : 0, `${key}: ${answers.map(({ kind }) => kind)} after ${before}`)
    const unknown = answers.filter(({ kind }) => kind === 'outcome_unknown').length
    assert.equal(unknown, before === 'in_progress' && !mayRun ? answers.length : 0, `${key}: unknown`)
  }
  // 3. How often the effect happened in the end.
  const end = await traceOf(place)
  for (const { effect, key } of moments) {
    const most = effect === 'repeatable' ? 2 : 1
    assert.ok(end.count(key) <= most, `${key}: ${end.count(key)} effects`)
    if (effect === 'transaction') assert.equal(end.count(key), 1, `${key}: the business row`)
    assert.ok(end.effectKeys(key).size <= 1, `${key}: one effect key for every attempt`)
  }
  await next.end()
  return found
}

import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Execution } from 'onceonly'
import { createLedger, SECOND } from 'onceonly'
import type { Random } from '../../../src/testing/random.ts'
import type { Child } from '../../support/crew.ts'
import type { Place } from '../../support/place.ts'
import { sqlOf, who } from '../../support/place.ts'
import type { Acknowledged, LoadKind, LoadTask } from './load-worker.ts'
import { files, loadKinds, loadOperations, newestKey, WINDOW } from './load-worker.ts'

/** Workers that are killed at random and started again, under load; then the books are checked. */
export interface LoadOptions {
  readonly workers: number
  readonly kills: number
  /** Past it a machine that is too busy for all of them gets by with fewer, but not with less than proves something. */
  readonly boundMs: number
  readonly random: Random
  readonly progress?: (kills: number) => void
}

export interface LoadFigures {
  readonly kills: number
  readonly identities: number
  readonly acknowledged: number
  readonly unknown: number
  readonly executedAfterwards: number
}

const LAPSE_MS = 40 * SECOND
const LAPSE_EVERY_MS = 700
/** A worker lives at least until it is ready, and then not long. */
const LIFE_LEAST_MS = 40
const LIFE_MOST_MS = 700
/** A load that did not load, or killers that did not kill, would prove nothing. */
const KILLS_LEAST = 6
const COMMANDS_LEAST = 20
/** Commands that the books are checked with, at a time. */
const AUDITS_AT_ONCE = 32

export async function killUnderLoad(place: Place, options: LoadOptions): Promise<LoadFigures> {
  const endsMs = performance.now() + options.boundMs
  const odd: unknown[] = []
  let kills = 0
  const acknowledged = () => {
    const size = statSync(files(place.folder).acks, { throwIfNoEntry: false })?.size ?? 0
    return newestKey(size)
  }
  const goesOn = () =>
    kills < KILLS_LEAST || acknowledged() < COMMANDS_LEAST || (kills < options.kills && performance.now() < endsMs)
  const slot = async () => {
    while (goesOn()) {
      const child = start(place, options.random)
      await child.heard('ready')
      await sleep(LIFE_LEAST_MS + options.random.below(LIFE_MOST_MS - LIFE_LEAST_MS))
      child.signal('SIGKILL')
      const { signal, complaints } = await child.ended
      assert.equal(signal, 'SIGKILL', complaints)
      odd.push(...child.heardSoFar('odd'))
      kills++
      options.progress?.(kills)
    }
  }
  const timeFlies = async () => {
    while (goesOn()) {
      await sleep(LAPSE_EVERY_MS)
      await place.advance(LAPSE_MS)
    }
  }
  await Promise.all([timeFlies(), ...Array.from({ length: options.workers }, slot)])
  assert.deepEqual(odd, [], 'errors that no client should have seen')
  const { size } = await stat(files(place.folder).acks)
  const keys = Array.from({ length: newestKey(size) + WINDOW }, (_, n) => String(n))
  const audited = await audit(place, keys)
  return { kills, ...audited }
}

function start(place: Place, random: Random): Child {
  const task: LoadTask = { address: place.address, folder: place.folder, seed: random.below(2 ** 32) }
  return place.crew.start({ file: import.meta.resolve('./load-worker.ts'), task })
}

async function audit(place: Place, keys: readonly string[]): Promise<Omit<LoadFigures, 'kills'>> {
  await place.advance(LAPSE_MS)
  const once = createLedger({ store: place.another(), background: false })
  // 1. Every identity is asked for once more: what was done is replayed, what was not is done now, the rest is unknown.
  const operations = loadOperations(once)
  const answers = new Map<string, Execution<string>>()
  const ran: Record<LoadKind, Set<string>> = { transaction: new Set(), external: new Set() }
  const ask: Record<LoadKind, (key: string) => Promise<Execution<string>>> = {
    transaction: (key) =>
      operations.transaction.execute(who(key), key, async ({ tx }) => {
        ran.transaction.add(key)
        await tx.query('insert into business (key, value) values (?, ?)', [key, 'auditor'])
        return 'auditor'
      }),
    external: (key) =>
      operations.external.execute(who(key), key, () => {
        ran.external.add(key)
        return 'auditor'
      }),
  }
  const waiting = loadKinds.flatMap((kind) => keys.map((key) => ({ kind, key }))).values()
  await Promise.all(
    Array.from({ length: AUDITS_AT_ONCE }, async () => {
      for (const { kind, key } of waiting) answers.set(`${kind} ${key}`, await ask[kind](key))
    }),
  )
  // 2. The books must agree.
  const unknown = await checkEffects(place, keys, answers, ran)
  const acknowledged = await checkAcknowledged(place, answers)
  await once.upkeep.reconcile()
  assert.equal((await once.count({ state: 'unknown' })).unknown, unknown, 'unknown outcomes that operators see')
  if (place.address.kind === 'sqlite') {
    const [row] = await sqlOf(place.store).query('pragma integrity_check')
    assert.deepEqual({ ...row }, { integrity_check: 'ok' })
  }
  await once.stop()
  const executedAfterwards = ran.transaction.size + ran.external.size
  return { identities: answers.size, acknowledged, unknown, executedAfterwards }
}

async function checkEffects(
  place: Place,
  keys: readonly string[],
  answers: ReadonlyMap<string, Execution<string>>,
  ran: Record<LoadKind, ReadonlySet<string>>,
): Promise<number> {
  const rows = byKey(await place.business())
  const text = await readFile(files(place.folder).effects, 'utf8').catch(() => '')
  const lines = byKey(text.split('\n').flatMap(pairOf))
  let unknown = 0
  for (const key of keys) {
    // A transaction: as many effects as identities, and the record knows the very row.
    const transaction = answers.get(`transaction ${key}`)
    assert.ok(transaction !== undefined && 'value' in transaction, `transaction ${key}: ${transaction?.kind}`)
    assert.deepEqual(rows.get(key), [transaction.value], `transaction ${key}: its rows`)
    // An external effect: at most one, and either its outcome is known or it is not repeated.
    const external = answers.get(`external ${key}`)
    const effects = [...(lines.get(key) ?? []), ...(ran.external.has(key) ? ['auditor'] : [])]
    if (external?.kind === 'refused' && external.error.code === 'outcome_unknown') {
      unknown++
      assert.ok(effects.length <= 1, `external ${key}: ${effects} although unknown`)
    } else {
      assert.ok(external !== undefined && 'value' in external, `external ${key}: ${external?.kind}`)
      assert.deepEqual(effects, [external.value], `external ${key}: its effects`)
    }
  }
  return unknown
}

async function checkAcknowledged(place: Place, answers: ReadonlyMap<string, Execution<string>>): Promise<number> {
  const text = await readFile(files(place.folder).acks, 'utf8')
  // The last line of a killed process may have been cut short: that answer was not acknowledged.
  const lines = text.split('\n').filter((line) => line.endsWith('}'))
  for (const line of lines) {
    const { kind, key, value } = JSON.parse(line) as Acknowledged
    const now = answers.get(`${kind} ${key}`)
    assert.ok(now !== undefined && 'value' in now, `${kind} ${key} was acknowledged and is lost: ${now?.kind}`)
    assert.equal(now.value, value, `${kind} ${key}: a replay differs from what was acknowledged`)
  }
  return lines.length
}

interface Pair {
  readonly key: string
  readonly value: string
}

function pairOf(line: string): Pair[] {
  const [key, value] = line.split(' ')
  return key === undefined || value === undefined ? [] : [{ key, value }]
}

function byKey(pairs: readonly Pair[]): Map<string, string[]> {
  const map = new Map<string, string[]>()
  for (const { key, value } of pairs) map.set(key, [...(map.get(key) ?? []), value])
  return map
}

import assert from 'node:assert/strict'
import { MINUTE } from 'onceonly'
import type { IncomingMessage } from 'onceonly/inbox'
import type { Random } from 'onceonly/testing'
import { createRandom } from 'onceonly/testing'
import { createReplica, createSent, parsed, saved, sentIn, started } from '../../../support/events/saga/stage.ts'
import type { Place } from '../../../support/place.ts'
import { sqlOf } from '../../../support/place.ts'
import type { Acked, Done, Order, WorkerTask } from './worker.ts'

export interface StormOptions {
  readonly instances: number
  /** Of each instance, at most. */
  readonly files: number
  readonly processes: number
  /** How many processes are killed on the way; others take their places. */
  readonly kills: number
  readonly seed: number
  readonly progress?: (line: string) => void
}

export interface StormResult {
  readonly deliveries: number
  readonly kills: number
  readonly commands: number
}

/**
 * All events of imports, one to four times, in any order, to several processes that are killed meanwhile. In the end every import has completed, and every command was sent once.
 */
export async function storm(place: Place, options: StormOptions): Promise<StormResult> {
  await createSent(place.store)
  const replica = createReplica(place.store)
  try {
    // The tables are there before the start, so that no process is late because it made them.
    await replica.saga.get('nothing yet')
    const random = createRandom(options.seed)
    const files = new Map<string, readonly string[]>()
    for (let index = 0; index < options.instances; index++) {
      const names = Array.from({ length: 1 + random.below(options.files) }, (_, file) => `file ${file}`)
      files.set(`search ${index}`, names)
    }
    const deliveries = shuffled(
      random,
      [...files].flatMap(([id, names]) => deliveriesOf(random, id, names)),
    )
    const budget = { kills: options.kills, killed: 0 }
    await Promise.all(
      Array.from({ length: options.processes }, async (_, slot) => {
        const share = deliveries.filter((_each, index) => index % options.processes === slot)
        await carry(place, createRandom(options.seed * 31 + slot), share, budget, slot)
        options.progress?.(`process ${slot} has handed over its ${share.length} messages`)
      }),
    )
    await deliverTheRest(place, () => replica.saga.upkeep.deliver())
    const commands = await check(place, replica, files)
    return { deliveries: deliveries.length, kills: budget.killed, commands }
  } finally {
    await replica.stop()
  }
}

const COPIES = 4

function deliveriesOf(random: Random, id: string, names: readonly string[]): IncomingMessage[] {
  // The storage may announce an upload again under another id; a copy of a message has the same one.
  const announced = Array.from({ length: 1 + random.below(2) }, () => saved(id, names))
  const all = [started(id), ...announced, ...names.map((name) => parsed(id, name))]
  return all.flatMap((message) => Array.from({ length: 1 + random.below(COPIES) }, () => message))
}

function shuffled<T>(random: Random, all: readonly T[]): T[] {
  return all
    .map((each) => ({ each, at: random.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ each }) => each)
}

/** What one process is given: it is done with it long before the crew would end it. */
const BATCH = 500

/** One place in the crew, and every process that ever fills it. */
async function carry(
  place: Place,
  random: Random,
  share: readonly IncomingMessage[],
  budget: { kills: number; killed: number },
  slot: number,
): Promise<void> {
  let left = [...share]
  for (let life = 1; left.length > 0; life++) {
    const task: WorkerTask = { address: place.address, name: `storm-${slot}-${life}` }
    const worker = place.crew.start({ file: import.meta.resolve('./worker.ts'), task })
    await worker.heard('ready')
    const batch = left.slice(0, BATCH)
    worker.order({ messages: batch, deliver: true } satisfies Order)
    const acked = new Set<number>()
    const doomed = budget.kills > 0 && batch.length > 1
    if (doomed) {
      budget.kills--
      for (let heard = 1 + random.below(batch.length - 1); heard > 0; heard--) {
        acked.add((await worker.heard<Acked>('acked')).index)
      }
      worker.signal('SIGKILL')
      await worker.ended
      budget.killed++
    } else {
      const { complaints, receipts } = await worker.heard<Done>('done')
      assert.deepEqual([complaints, receipts['parked'] ?? 0], [[], 0])
    }
    for (const { index } of worker.heardSoFar<Acked>('acked')) acked.add(index)
    const again = batch.filter((_, index) => !acked.has(index))
    left = [...again.map((each) => ({ ...each, deliveries: (each.deliveries ?? 0) + 1 })), ...left.slice(BATCH)]
  }
}

/** Rows that a killed process had taken are free again after their lease. */
const ROUNDS = 10

async function deliverTheRest(place: Place, deliver: () => Promise<number>): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    await deliver()
    const [row] = await sqlOf(place.store).query<{ count: number | string }>(
      'select count(*) as count from onceonly_saga_pending',
    )
    if (Number(row?.count) === 0) return
    await place.advance(2 * MINUTE)
  }
  throw new Error('Something is still pending.')
}

async function check(
  place: Place,
  { saga }: ReturnType<typeof createReplica>,
  files: ReadonlyMap<string, readonly string[]>,
): Promise<number> {
  const expected: string[] = []
  for (const [searchId, names] of files) {
    const view = await saga.get(searchId)
    assert.equal(view?.state, 'Completed', searchId)
    assert.deepEqual(view?.data.parsed, new Set(names.toSorted()), searchId)
    for (const file of names) expected.push(`StartParsing ${JSON.stringify({ searchId, file })}`)
    expected.push(`ImportCompleted ${JSON.stringify({ searchId, files: names.length })}`)
  }
  assert.deepEqual(await sentIn(place.store), expected.toSorted())
  assert.equal(await saga.deadLetters.count(), 0)
  return expected.length
}

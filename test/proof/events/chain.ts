import assert from 'node:assert/strict'
import { createInbox } from 'onceonly/inbox'
import { createOutbox } from 'onceonly/outbox'
import type { Child } from '../../support/crew.ts'
import { createReplica } from '../../support/events/saga/stage.ts'
import type { Place } from '../../support/place.ts'
import { sqlStore } from '../../support/place.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import type { ChainTask, Complaint } from './chain-worker.ts'
import type { BrokerAddress } from './outbox/broker.ts'

export interface Chain {
  readonly searches: number
  readonly files: number
  readonly replicas: number
  /** How many replicas are killed on the way, spread evenly over it; others take their places. */
  readonly kills: number
  readonly broker: BrokerAddress
  /** Restarts the broker, in the middle of everything; null for one that has no server. */
  readonly restart: (() => Promise<void>) | null
  readonly progress?: (line: string) => void
  /** How long without any progress means that something is lost. */
  readonly patienceMs?: number
}

export interface ChainFigures {
  readonly completed: number
  readonly killed: number
  readonly restarted: boolean
  readonly seconds: number
}

/** Short, so that the work of a killed replica continues while a test waits for it. */
const LEASE_MS = 2_000
const LOOK_MS = 50
const TRANSACTION = { timeoutMs: 30_000, lockMs: 20_000, refuseTwinOf: null }

/**
 * Outbox, relay, broker, saga, and back: every search is announced twice, its saga commands the parsing of every file,
 * an ordered inbox carries that out and answers, and the saga completes. Replicas are killed and the broker restarted
 * on the way. In the end every search has completed, everything happened once, and in the order of its key.
 */
export async function runChain(place: Place, chain: Chain): Promise<ChainFigures> {
  const startedMs = performance.now()
  const task: ChainTask = { address: place.address, broker: chain.broker, leaseMs: LEASE_MS }
  const all: Child[] = []
  const living: Child[] = []
  let over = false
  const start = async () => {
    const child = place.crew.start({ file: import.meta.resolve('./chain-worker.ts'), task })
    all.push(child)
    await child.heard('ready')
    living.push(child)
    // A child of a test is ended after some minutes; a longer chain continues with another one.
    void child.ended.then(async () => {
      if (over || !living.includes(child)) return
      living.splice(living.indexOf(child), 1)
      await start()
    })
  }
  await Promise.all(Array.from({ length: chain.replicas }, start))
  const ids = Array.from({ length: chain.searches }, (_, n) => `search-${n}`)
  const files = Array.from({ length: chain.files }, (_, n) => `file-${n}`)
  // The last of them wait until the harm is done, so that it is done in the middle however fast the others are.
  const first = firstOf(chain)
  await announce(place, ids.slice(0, first), files)
  let late = ids.slice(first)

  let [killed, restarted] = [0, false]
  await untilDone(place, chain, async (completed) => {
    if (killed < chain.kills && completed > ((killed + 1) * chain.searches) / (chain.kills + 2)) {
      killed += 1
      living.shift()?.signal('SIGKILL')
      await start()
    }
    if (!restarted && chain.restart !== null && completed > chain.searches / 2) {
      restarted = true
      await chain.restart()
    }
    if (late.length > 0 && killed >= chain.kills && (restarted || chain.restart === null)) {
      await announce(place, late, files)
      late = []
    }
  })
  over = true
  await check(place, ids, files)
  for (const child of living) child.order('stop')
  await Promise.all(living.map((child) => child.heard('stopped')))
  const complaints = all.flatMap((child) => child.heardSoFar<Complaint>('complaint').map(({ text }) => text))
  assert.deepEqual(complaints, [])
  const seconds = Math.round((performance.now() - startedMs) / 100) / 10
  return { completed: ids.length, killed, restarted, seconds }
}

/** Three quarters, or as many as must have completed before the last harm. */
function firstOf({ searches, kills }: Chain): number {
  return Math.min(searches, Math.max(Math.ceil(0.75 * searches), Math.floor((kills * searches) / (kills + 2)) + 1))
}

/** Twice each, as a storage does: under two ids, one behind the other. */
async function announce(place: Place, ids: readonly string[], files: readonly string[]): Promise<void> {
  const store = sqlStore(place.store)
  const outbox = createOutbox({ ledger: quietLedger(store) })
  await outbox.prepare()
  for (const searchId of ids) {
    await store.transactions.run(async ({ tx }) => {
      for (const copy of [1, 2]) {
        const message = { topic: 'Saved', key: `saved ${searchId}`, body: { searchId, files } }
        await outbox.add(tx, { id: `saved-${searchId}-${copy}`, ...message })
      }
    }, TRANSACTION)
  }
}

async function untilDone(place: Place, chain: Chain, harm: (completed: number) => Promise<void>): Promise<void> {
  const { searches, files, patienceMs = 120_000, progress } = chain
  let [handled, sinceMs] = [-1, performance.now()]
  for (;;) {
    const rows = await place.business()
    const completed = rows.filter(({ value }) => value.endsWith(' completed')).length
    if (completed >= searches && rows.length >= searches * (files + 1)) return
    await harm(completed)
    if (rows.length > handled) {
      handled = rows.length
      sinceMs = performance.now()
      progress?.(`${completed} of ${searches} searches completed`)
    }
    assert.ok(performance.now() - sinceMs < patienceMs, `only ${completed} of ${searches} searches completed`)
    await new Promise((resolve) => void setTimeout(resolve, LOOK_MS))
  }
}

async function check(place: Place, ids: readonly string[], files: readonly string[]): Promise<void> {
  const store = sqlStore(place.store)
  const done = await store.sql.query<{ key: string; place: unknown; value: string }>(
    'select key, place, value from business order by key, place',
  )
  const expected = [...files, 'completed'].map((what, index) => `${index + 1}: ${index + 1} ${what}`)
  for (const id of ids) {
    const lines = done.filter(({ key }) => key === id).map((row) => `${Number(row.place)}: ${row.value}`)
    assert.deepEqual(lines, expected, id)
  }
  const ledger = quietLedger(store)
  const outbox = createOutbox({ ledger })
  assert.equal(await outbox.deadLetters.count(), 0)
  const replica = createReplica(place.store)
  const parser = createInbox({ ledger, consumer: 'parser', background: false })
  try {
    for (const id of ids) assert.equal((await replica.saga.get(id))?.state, 'Completed', id)
    assert.equal(await replica.saga.deadLetters.count(), 0)
    assert.equal(await parser.deadLetters.count(), 0)
  } finally {
    await parser.stop()
    await ledger.stop()
    await replica.stop()
  }
}

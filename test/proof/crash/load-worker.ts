import { appendFileSync, fstatSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Execution, Ledger, SqlTx } from 'onceonly'
import { createLedger, isOnceError } from 'onceonly'
import { createRandom } from '../../../src/testing/random.ts'
import type { Address } from '../../support/place.ts'
import { openStore, who } from '../../support/place.ts'
import { listen, readTask, report } from './member.ts'

/** A process that serves clients until it is killed. */
export interface LoadTask {
  readonly address: Address
  readonly folder: string
  readonly seed: number
}

export const loadKinds = ['transaction', 'external'] as const
export type LoadKind = (typeof loadKinds)[number]

/** One answer that a client was given: written and synced before the client counts as having heard it. */
export interface Acknowledged {
  readonly kind: LoadKind
  readonly key: string
  readonly value: string
}

/** Commands under way in one process. */
const CLIENTS = 6
/** Clients of all workers want the same few commands at a time, and each again for a while after it was answered. */
export const WINDOW = 12
/** A new command for about every third answer, however fast the machine is today. */
const BYTES_PER_COMMAND = 150
const EFFECT_MOST_MS = 12
const RETRY_MS = 20

export const files = (folder: string) => ({ effects: join(folder, 'effects'), acks: join(folder, 'acks') })
/** How far the load has come: all workers see it by what was acknowledged so far. */
export const newestKey = (acksBytes: number) => Math.floor(acksBytes / BYTES_PER_COMMAND)

export type LoadOperations = ReturnType<typeof loadOperations>
export function loadOperations(once: Ledger<SqlTx>) {
  return {
    transaction: once.operation({ name: 'load.transaction', effect: 'transaction' }),
    external: once.operation({ name: 'load.external', effect: 'external', whileRunning: { waitMs: 500 } }),
  }
}

async function serve(task: LoadTask): Promise<void> {
  const random = createRandom(task.seed)
  const { store } = openStore(task.address)
  const once = createLedger({ store })
  const operations = loadOperations(once)
  const acks = openSync(files(task.folder).acks, 'a')
  const pause = () => sleep(random.below(EFFECT_MOST_MS))
  let effects = 0
  const nonce = () => `${process.pid}-${++effects}`

  const run: Record<LoadKind, (key: string) => Promise<Execution<string>>> = {
    transaction: (key) =>
      operations.transaction.execute(who(key), key, async ({ tx }) => {
        const value = nonce()
        await pause()
        await tx.query('insert into business (key, value) values (?, ?)', [key, value])
        return value
      }),
    external: (key) =>
      operations.external.execute(who(key), key, async () => {
        const value = nonce()
        await pause()
        appendFileSync(files(task.folder).effects, `${key} ${value}\n`)
        await pause()
        return value
      }),
  }

  async function client(kind: LoadKind): Promise<never> {
    for (;;) {
      const key = String(newestKey(fstatSync(acks).size) + random.below(WINDOW))
      const value = await answerTo(() => run[kind](key))
      if (value === null) continue
      const line: Acknowledged = { kind, key, value }
      writeSync(acks, `${JSON.stringify(line)}\n`)
      fsyncSync(acks)
    }
  }

  await store.clock.now({ timeoutMs: 60_000 })
  report({ kind: 'ready' })
  await Promise.all(Array.from({ length: CLIENTS }, (_, n) => client(loadKinds[n % 2] as LoadKind)))
}

const usual = new Set(['in_progress', 'retry_later', 'outcome_unknown'])

/** As a client does: it retries when it may, and gives up on an unknown outcome. */
async function answerTo(ask: () => Promise<Execution<string>>): Promise<string | null> {
  try {
    const execution = await ask()
    if ('value' in execution) return execution.value
    if (!usual.has(execution.error.code)) throw execution.error
    if (execution.error.code !== 'outcome_unknown') await sleep(RETRY_MS)
  } catch (error) {
    const code = isOnceError(error) ? error.code : 'a foreign error'
    report({ kind: 'odd', code, text: error instanceof Error ? (error.stack ?? error.message) : String(error) })
    await sleep(RETRY_MS)
  }
  return null
}

if (import.meta.main) {
  listen()
  await serve(readTask<LoadTask>())
}

import assert from 'node:assert/strict'
import type { Ledger, OutboxPort, SqlTx } from 'onceonly'
import type { InboxEvent, IncomingMessage, Receipt } from 'onceonly/inbox'
import type { Saga, SagaEvent, SagaOptions } from 'onceonly/saga'
import { createSaga } from 'onceonly/saga'
import type { CrashStore, Place } from '../../place.ts'
import { onEveryPlaceAtOnce, sqlOf } from '../../place.ts'
import { quietLedger } from '../../quiet-ledger.ts'
import type { Hooks, ImportData } from './imports.ts'
import { defineImports, events } from './imports.ts'

export type ImportState = 'Uploading' | 'Parsing' | 'Completed' | 'Error'
type Options = SagaOptions<ImportData, typeof events, 'Uploading' | 'Parsing', 'Completed' | 'Error'>

/** One replica: a store, a ledger and a saga of its own, as a process has them. */
export interface Replica {
  readonly saga: Saga<ImportData, ImportState>
  readonly ledger: Ledger<SqlTx>
  readonly events: SagaEvent[]
  readonly inboxEvents: InboxEvent[]
  stop(): Promise<void>
}

/** Rows in the place of an outbox: what is in this table was sent, what is not was not. */
export const outbox: OutboxPort<SqlTx> = {
  async add(tx, { id, topic, key, body }) {
    await tx.query('insert into sent (id, topic, key, body) values (?, ?, ?, ?)', [
      id,
      topic,
      key ?? null,
      JSON.stringify(body),
    ])
  },
}

export async function createSent(store: CrashStore): Promise<void> {
  await sqlOf(store).query('create table sent (id text primary key, topic text not null, key text, body text not null)')
}

export function createReplica(
  store: CrashStore,
  hooks: Hooks = {},
  options: Partial<Options> = {},
  port = outbox,
): Replica {
  const seen: SagaEvent[] = []
  const inboxEvents: InboxEvent[] = []
  const ledger = quietLedger(store, port)
  const saga = createSaga({
    definition: defineImports(hooks),
    ledger,
    background: false,
    on: (each) => seen.push(each),
    ...options,
    inbox: { on: (each) => inboxEvents.push(each), ...options.inbox },
  })
  return {
    saga,
    ledger,
    events: seen,
    inboxEvents,
    async stop() {
      await saga.stop()
      await ledger.stop()
    },
  }
}

export interface Stage {
  readonly place: Place
  readonly store: CrashStore
  replica(hooks?: Hooks, options?: Partial<Options>): Replica
  /** A replica with a store of its own. */
  another(hooks?: Hooks, options?: Partial<Options>): Replica
  /** What was sent, as `topic body`. */
  sent(): Promise<readonly string[]>
}

export function onEveryStage(title: string, body: (stage: Stage) => Promise<void>): void {
  onEveryPlaceAtOnce(title, async (place) => {
    await createSent(place.store)
    const replicas: Replica[] = []
    const keep = (replica: Replica) => {
      replicas.push(replica)
      return replica
    }
    try {
      await body({
        place,
        store: place.store,
        replica: (hooks, options) => keep(createReplica(place.store, hooks, options)),
        another: (hooks, options) => keep(createReplica(place.another(), hooks, options)),
        sent: () => sentIn(place.store),
      })
    } finally {
      for (const replica of replicas) await replica.stop()
    }
  })
}

export async function sentIn(store: CrashStore): Promise<readonly string[]> {
  const rows = await sqlOf(store).query<{ topic: string; body: string }>('select topic, body from sent')
  return rows.map(({ topic, body }) => `${topic} ${body}`).toSorted()
}

let messages = 0

/** Copies of a message are made by handing over the same one again. */
export function message(name: keyof typeof events, body: Readonly<Record<string, unknown>>): IncomingMessage {
  const spec = events[name]
  return {
    id: `m${++messages}-${process.pid}`,
    topic: spec.kind === 'event' ? (spec.topic ?? name) : name,
    key: null,
    sequence: null,
    body: JSON.stringify(body),
    headers: {},
    deliveries: 1,
  }
}

export const started = (searchId: string) => message('Started', { searchId })
export const saved = (searchId: string, files: readonly string[]) => message('Saved', { searchId, files })
export const parsed = (searchId: string, name: string) => message('FileParsed', { searchId, name })
export const faulted = (searchId: string, reason: string) => message('Faulted', { searchId, reason })
export const cancelled = (searchId: string) => message('Cancelled', { searchId })

export async function handled(replica: Replica, ...all: readonly IncomingMessage[]): Promise<void> {
  for (const each of all) assertHandled(await replica.saga.handle(each))
}

export function assertHandled(receipt: Receipt): void {
  assert.equal(
    receipt.kind,
    'handled',
    JSON.stringify(receipt, (_, value) => (value instanceof Error ? value.message : value)),
  )
}

export async function stateOf(replica: Replica, id: string): Promise<string | null> {
  return (await replica.saga.get(id))?.state ?? null
}

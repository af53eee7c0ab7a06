import { type OutboxPort, type SqlTx } from 'onceonly'
import type { InboxEvent, IncomingMessage } from 'onceonly/inbox'
import { createSaga, type SagaEvent } from 'onceonly/saga'
import { filesOf, type JobState, jobOf } from '../../../../service/imports/jobs.ts'
import { searchImportJob } from '../../../../service/imports/saga.ts'
import { migrations } from '../../../../service/imports/schema.ts'
import { onEveryPlace, sqlOf } from '../../../support/place.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'

/** Rows in the place of an outbox: what is in this table was sent, what is not was not. */
const outbox: OutboxPort<SqlTx> = {
  async add(tx, { id, topic, body }) {
    await tx.query('insert into sent (id, topic, body) values (?, ?, ?)', [id, topic, JSON.stringify(body)])
  },
}

type CrashStore = Parameters<typeof sqlOf>[0]

/** A store, a ledger and a saga, as one process of the server has them; the test drives its timers. */
function createReplica(store: CrashStore) {
  const sagaEvents: SagaEvent[] = []
  const inboxEvents: InboxEvent[] = []
  const ledger = quietLedger(store, outbox)
  const saga = createSaga({
    definition: searchImportJob,
    ledger,
    background: false,
    on: (event) => sagaEvents.push(event),
    inbox: { on: (event) => inboxEvents.push(event) },
  })
  return {
    saga,
    sagaEvents,
    inboxEvents,
    async stop() {
      await saga.stop()
      await ledger.stop()
    },
  }
}

export type Replica = ReturnType<typeof createReplica>

export interface Stage {
  readonly replica: Replica
  /** One more, with a store of its own. */
  another(): Replica
  advance(ms: number): Promise<void>
  sql: ReturnType<typeof sqlOf>
  state(searchId: string): Promise<JobState | null>
  statuses(searchId: string): Promise<readonly string[]>
  /** The files whose parsing was asked for, as often as it was. */
  asked(searchId: string): Promise<readonly string[]>
}

export function onEveryStage(title: string, body: (stage: Stage) => Promise<void>): void {
  onEveryPlace(title, async (place) => {
    const sql = sqlOf(place.store)
    await sql.migrate('imports', migrations)
    await sql.query('create table sent (id text primary key, topic text not null, body text not null)')
    const replicas: Replica[] = []
    const keep = (replica: Replica) => {
      replicas.push(replica)
      return replica
    }
    try {
      await body({
        replica: keep(createReplica(place.store)),
        another: () => keep(createReplica(place.another())),
        advance: place.advance,
        sql,
        state: async (searchId) => (await jobOf(sql, searchId))?.state ?? null,
        statuses: async (searchId) => (await filesOf(sql, searchId)).map(({ status }) => status),
        async asked(searchId) {
          const rows = await sql.query<{ body: string }>(
            `select body from sent where topic = 'StartParsingReferenceFile'`,
          )
          return rows
            .map((row) => JSON.parse(row.body) as { searchId: string; file: string })
            .filter((command) => command.searchId === searchId)
            .map(({ file }) => file)
            .toSorted()
        },
      })
    } finally {
      for (const replica of replicas) await replica.stop()
    }
  })
}

let messages = 0

/** Another message every time, also when it says the same: what copies of a message do is the inbox's business. */
function message(topic: string, body: object): IncomingMessage {
  const id = `m-${++messages}-${process.pid}`
  return { id, topic, key: null, sequence: null, body: JSON.stringify(body), headers: {}, deliveries: 1 }
}

export const metadata = {
  workspaceId: 'demo',
  projectId: 'p-1',
  searchName: 'Retries',
  referenceFiles: ['a.ris', 'b.csv'],
}

export const started = (searchId: string, change: object = {}) =>
  message('SearchUploadStarted', { searchId, ...metadata, ...change })
export const saved = (searchId: string, change: object = {}) =>
  message('SearchUploadSaved', { searchId, ...metadata, ...change })
export const parsed = (searchId: string, file: string) =>
  message('ReferenceFileParsingCompleted', { searchId, file, references: 1, errors: 0 })
export const faulted = (searchId: string, file: string, reason = 'The file is empty') =>
  message('ReferenceFileFaulted', { searchId, file, reason })
export const notStarted = (searchId: string, file: string) =>
  message('StartParsingFaulted', { searchId, file, reason: 'Could not be begun' })

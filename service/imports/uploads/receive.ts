import { final, type Ledger, type SqlTx } from 'onceonly'
import type { Acknowledgement, InboxListener, InboxTools, IncomingMessage, Receipt } from 'onceonly/inbox'
import { acknowledgementOf, createInbox, type Subscriber, type Subscription } from 'onceonly/inbox'
import type { Base } from '../../store.ts'
import { topics } from '../events.ts'
import { holdSearch, markReceived, markSaved, searchById } from '../searches.ts'
import type { ObjectCreated, Upload } from './notification.ts'
import { readNotification } from './s3.ts'

/** Notifications of the storage become the set of a search's received files, whichever way and how often they come. */
export interface Receiver {
  receive(created: ObjectCreated): Promise<Receipt>
  /** From the storage of this server, by the broker. */
  consume(subscriber: Subscriber): Promise<void>
  stop(): Promise<void>
}

const consumer = 'imports.received'
/** Short transactions on different searches. */
const CONCURRENCY = 4

export function createReceiver(parts: {
  readonly once: Ledger<SqlTx>
  readonly base: Base
  readonly on: InboxListener
}): Receiver {
  const { once, base, on } = parts
  const inbox = createInbox({ ledger: once, store: base.store, consumer, on })
  const subscriptions: Subscription[] = []

  async function settle({ searchId, name }: Upload, { tx, outbox }: InboxTools<SqlTx>, now: number): Promise<void> {
    // Alone with the search: of two last files at once, each would miss the other.
    if (!(await holdSearch(tx, searchId))) return
    await markReceived(tx, searchId, name, now)
    if (!(await markSaved(tx, searchId, now))) return
    const search = await searchById(tx, searchId)
    if (search === null) throw new Error(`The search ${searchId} cannot be found`)
    const { workspaceId, projectId, searchName, referenceFiles } = search
    const body = { workspaceId, projectId, searchId, searchName, referenceFiles }
    await outbox.add({ topic: topics.saved, key: searchId, body })
  }

  async function receive({ searchId, name, message }: ObjectCreated): Promise<Receipt> {
    const now = await base.now()
    return inbox.receive(message, (_body, tools) => settle({ searchId, name }, tools, now))
  }

  /** Every record by itself, under its own id, so that a copy that came by the hook is known. */
  async function take(message: IncomingMessage): Promise<Acknowledgement> {
    const read = readNotification(message.body)
    if ('errors' in read) {
      const wrong = read.errors.map(({ field, detail }) => `${field} ${detail}`).join('; ')
      return acknowledgementOf(await inbox.receive(message, () => Promise.reject(final(new Error(wrong)))))
    }
    for (const created of read.created) {
      const acknowledgement = acknowledgementOf(await receive(created))
      if (acknowledgement.kind !== 'done') return acknowledgement
    }
    return { kind: 'done' }
  }

  return {
    receive,
    async consume(subscriber) {
      subscriptions.push(
        await subscriber.subscribe({ consumer, topics: [topics.storage], concurrency: CONCURRENCY }, take),
      )
    },
    async stop() {
      await Promise.all(subscriptions.map((subscription) => subscription.stop()))
      await inbox.stop()
    },
  }
}

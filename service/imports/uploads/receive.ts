import { final, type SqlTx } from 'onceonly'
import type { Acknowledgement, InboxContext, InboxListener, IncomingMessage, Receipt } from 'onceonly/inbox'
import { acknowledgementOf, createInbox, postpone, type Subscriber, type Subscription } from 'onceonly/inbox'
import type { ServerParts } from '../../parts.ts'
import { topics } from '../events.ts'
import { acceptedFile, acceptFile, holdSearch, markReceived, markSaved, searchById, uploadsOf } from '../searches.ts'
import type { ObjectCreated } from './notification.ts'
import { readNotification } from './s3.ts'
import { AWAY_MS, type Storage, StorageAway, type StoredFile, type Upload } from './storage.ts'

export type Received =
  | Receipt
  /** It cannot be seen in the storage, or not yet. Declared files are looked for until their import ends. */
  | { readonly kind: 'absent' }
  /** It is about other content than the file has. */
  | { readonly kind: 'other' }

/** Notifications of the storage become the set of a search's received files, whichever way and how often they come. */
export interface Receiver {
  /** @throws StorageAway */
  receive(created: ObjectCreated): Promise<Received>
  /** By the broker: from the storage of this server, or from a bucket that publishes there. */
  consume(subscriber: Subscriber): Promise<void>
  stop(): Promise<void>
}

interface Parts extends Pick<ServerParts, 'once' | 'base' | 'log'> {
  readonly storage: Pick<Storage, 'kind' | 'look' | 'locate'>
  readonly on: InboxListener
}

const consumer = 'imports.received'
/** Short transactions on different searches. */
const CONCURRENCY = 4

export function createReceiver({ once, base, storage, on, log }: Parts): Receiver {
  const inbox = createInbox({ ledger: once, consumer, on })
  const subscriptions: Subscription[] = []

  async function contentOf({ searchId, name, etag }: ObjectCreated): Promise<StoredFile | 'absent' | 'other'> {
    // Only a bucket has ETags of its own files.
    const isAbout = (file: StoredFile) => storage.kind === 'folder' || etag === null || etag === file.etag
    const row = (await uploadsOf(base.sql, searchId)).find((each) => each.name === name)
    if (row === undefined) return 'absent'
    const accepted = acceptedFile(row)
    if (accepted !== null) return isAbout(accepted) ? accepted : 'other'
    const found = await storage.look({ searchId, name })
    return found !== null && isAbout(found) ? found : 'absent'
  }

  async function settle(upload: Upload, file: StoredFile, tools: InboxContext<SqlTx>, now: number): Promise<boolean> {
    const { tx, outbox } = tools
    const { searchId } = upload
    // Alone with the search: of two last files at once, each would miss the other.
    if (!(await holdSearch(tx, searchId))) return true
    if ((await acceptFile(tx, upload, file, now)) === 'other') return false
    await markReceived(tx, searchId, upload.name, now)
    if (!(await markSaved(tx, searchId, now))) return true
    const search = await searchById(tx, searchId)
    if (search === null) throw new Error(`The search ${searchId} cannot be found`)
    const { workspaceId, projectId, searchName, referenceFiles } = search
    const body = { workspaceId, projectId, searchId, searchName, referenceFiles }
    await outbox.add({ topic: topics.saved, key: searchId, body })
    return true
  }

  async function receive(created: ObjectCreated): Promise<Received> {
    const { searchId, name, message } = created
    const file = await contentOf(created)
    if (file === 'absent' || file === 'other') return { kind: file }
    const now = await base.now()
    let counts = true
    const receipt = await inbox.receive(message, async (_body, tools) => {
      counts = await settle({ searchId, name }, file, tools, now)
    })
    return counts ? receipt : { kind: 'other' }
  }

  /** Every record by itself, under its own id, so that a copy that came by the hook is known. */
  async function take(message: IncomingMessage): Promise<Acknowledgement> {
    const read = readNotification(message.body, storage.locate)
    if ('confirm' in read) return { kind: 'done' }
    if ('errors' in read) {
      const wrong = read.errors.map(({ field, detail }) => `${field} ${detail}`).join('; ')
      return acknowledgementOf(await inbox.receive(message, () => Promise.reject(final(new Error(wrong)))))
    }
    try {
      for (const created of read.created) {
        const acknowledgement = await takeOne(created)
        if (acknowledgement.kind !== 'done') return acknowledgement
      }
    } catch (error) {
      if (!(error instanceof StorageAway)) throw error
      const later = postpone(error, { delayMs: AWAY_MS })
      return acknowledgementOf(await inbox.receive(message, () => Promise.reject(later)))
    }
    return { kind: 'done' }
  }

  async function takeOne(created: ObjectCreated): Promise<Acknowledgement> {
    const { searchId, name: file } = created
    const receipt = await receive(created)
    switch (receipt.kind) {
      case 'absent':
        log.info(
          { event: 'imports.file_absent', searchId, file },
          'announced, but not in the storage; looked for again',
        )
        return { kind: 'done' }
      case 'other':
        log.warn({ event: 'imports.other_content', searchId, file }, 'announced with other content than was accepted')
        return { kind: 'done' }
      default:
        return acknowledgementOf(receipt)
    }
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

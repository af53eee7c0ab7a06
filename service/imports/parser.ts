import type { Lease, SqlTx } from 'onceonly'
import { isOnceError } from 'onceonly'
import type { InboxContext, InboxListener, IncomingMessage, Receipt, Subscriber, Subscription } from 'onceonly/inbox'
import { acknowledgementOf, createInbox, postpone } from 'onceonly/inbox'
import { inTransaction } from '../messages/transaction.ts'
import type { ServerParts } from '../parts.ts'
import { messageId, readFileCommand, type StartParsingReferenceFile, topics } from './events.ts'
import { beginFile, endFile, fileStatus, type JobFile, settleFile } from './jobs.ts'
import { parseFile } from './parse-file.ts'
import { acceptedFile, uploadsOf } from './searches.ts'
import { FileMissing, type Storage, StorageAway, type StoredFile } from './uploads/storage.ts'

export interface Parser {
  /** One delivery of a command, whatever becomes of it. */
  take(message: IncomingMessage): Promise<Receipt>
  consume(subscriber: Subscriber): Promise<void>
  stop(): Promise<void>
}

interface Parts extends Pick<ServerParts, 'once' | 'base' | 'outbox'> {
  readonly storage: Pick<Storage, 'read'>
  readonly on: InboxListener
}

const CONSUMER = 'imports.parser'
/** Files at once in one process: each keeps a core busy. */
const FILES_AT_ONCE = 2
/** A file that is begun so often and never finished ends its process each time. */
const BEGINNINGS_MOST = 8
/** About a minute of tries: a person who waits for the import sees a fault soon. */
const FAILURES_MOST = 6

/** Most files are read within a second: so often a copy asks whether that is over. */
const LOOK_AGAIN_MS = 1_000

/**
 * A file that this server cannot get, because another one has it or because the storage is away, is left for later, ever
 * more slowly: a quarter of an hour in all, which is longer than a deploy.
 */
const ELSEWHERE_DELIVERIES_MOST = 40
const ELSEWHERE_CAP_MS = 30_000

/** What reading a file came to, before it has been recorded. */
type Read =
  | { readonly kind: 'read'; readonly file: JobFile }
  | { readonly kind: 'not_read' }
  | { readonly kind: 'threw'; readonly error: unknown }

/**
 * Consumes `StartParsingReferenceFile`: a file is read once, and its result is published once. The reader has a lease
 * on the file, so that copies which come meanwhile wait for it: they neither read beside it, nor count as beginnings.
 */
export function createParser({ once, base, outbox, storage, on }: Parts): Parser {
  const inbox = createInbox({
    ledger: once,
    consumer: CONSUMER,
    maxFailures: FAILURES_MOST,
    parse: (text) => readFileCommand(JSON.parse(text)),
    on,
  })
  const reading = once.operation({ name: 'imports.read', effect: 'repeatable' })
  const subscriptions: Subscription[] = []
  const stopping = new AbortController()

  async function read({ searchId, file: name }: StartParsingReferenceFile, deliveries: number): Promise<Read> {
    try {
      const beginnings = await beginFile(base.sql, searchId, name)
      if (beginnings === null) return { kind: 'not_read' }
      if (beginnings > BEGINNINGS_MOST) return { kind: 'read', file: unread(name, NEVER_FINISHED) }
      const file = await acceptedContent(searchId, name)
      if (file === null) return { kind: 'read', file: unread(name, NOT_STORED) }
      const parsed = await parseFile({ base, storage }, { searchId, name, file }, stopping.signal)
      return { kind: 'read', file: parsed }
    } catch (error) {
      const isTooLate = deliveries >= ELSEWHERE_DELIVERIES_MOST
      if (isTooLate && error instanceof FileMissing) return { kind: 'read', file: unread(name, NOT_STORED) }
      // A process that can still write has not died; an answer that is lost here costs one attempt.
      await endFile(base.sql, searchId, name).catch(() => {})
      const isLater = error instanceof FileMissing || error instanceof StorageAway
      return { kind: 'threw', error: isLater && !isTooLate ? later(error, deliveries) : error }
    }
  }

  /** Null: it was never stored, in whichever storage. */
  async function acceptedContent(searchId: string, name: string): Promise<StoredFile | null> {
    const row = (await uploadsOf(base.sql, searchId)).find((each) => each.name === name)
    return row === undefined ? null : acceptedFile(row)
  }

  async function take(message: IncomingMessage): Promise<Receipt> {
    const command = commandOf(message)
    if (command === null) return receive(message, null, { kind: 'not_read' })
    const key = messageId('read', command.searchId, command.file)
    const lease = await leaseOn(key)
    if (!('release' in lease)) {
      return { kind: 'later', id: message.id, delayMs: LOOK_AGAIN_MS, counted: false, error: lease.error }
    }
    try {
      const result = await read(command, message.deliveries ?? 1)
      const receipt = await receive(message, command, result)
      // It was read to its end: a store that could not take that down says nothing about the file.
      if (result.kind === 'read' && receipt.kind === 'later') {
        await endFile(base.sql, command.searchId, command.file).catch(() => {})
      }
      return receipt
    } finally {
      // One that cannot be given back, or was lost, is free when its time is over.
      await lease.release().catch(() => {})
    }
  }

  async function leaseOn(key: string): Promise<Pick<Lease, 'release'> | { readonly error: unknown }> {
    try {
      const claimed = await reading.claim({ tenant: 'imports', caller: CONSUMER, key }, null, { reserve: true })
      return 'lease' in claimed ? claimed.lease : { error: null }
    } catch (error) {
      // A store that is away burns no attempt of the message.
      if (isOnceError(error) && error.retryable) return { error }
      throw error
    }
  }

  async function receive(
    message: IncomingMessage,
    command: StartParsingReferenceFile | null,
    result: Read,
  ): Promise<Receipt> {
    const receipt = await inbox.receive<StartParsingReferenceFile>(message, (body, tools) =>
      settle(body, result, tools),
    )
    // Also when it comes again: the process that parked it may have died before it could publish.
    const reason = givenUp(receipt)
    if (command !== null && reason !== null) await reportNotStarted(command, reason)
    return receipt
  }

  /** In a transaction of its own, under an id of its own: published any number of times, it is there once. */
  async function reportNotStarted({ searchId, file }: StartParsingReferenceFile, why: string): Promise<void> {
    const id = messageId('not-started', searchId, file)
    const body = { searchId, file, reason: `Parsing was given up (${why})` }
    await inTransaction(base, (tx) => outbox.add(tx, { id, topic: topics.notStarted, key: searchId, body }))
  }

  return {
    take,
    async consume(subscriber) {
      const asked = { consumer: CONSUMER, topics: [topics.parse], concurrency: FILES_AT_ONCE }
      subscriptions.push(await subscriber.subscribe(asked, async (message) => acknowledgementOf(await take(message))))
    },
    async stop() {
      // A large file takes minutes, and another process begins it again just as well.
      stopping.abort(postpone('The server stops', { delayMs: LOOK_AGAIN_MS }))
      await Promise.all(subscriptions.map((subscription) => subscription.stop()))
      await inbox.stop()
    },
  }
}

async function settle(
  { searchId, file }: StartParsingReferenceFile,
  result: Read,
  { tx, outbox }: InboxContext<SqlTx>,
): Promise<void> {
  switch (result.kind) {
    case 'threw':
      throw result.error
    case 'not_read': {
      // Settled before, unless the file is unknown.
      if ((await fileStatus(tx, searchId, file)) !== null) return
      const body = { searchId, file, reason: 'The file belongs to no import' }
      return outbox.add({ topic: topics.notStarted, key: searchId, body })
    }
    case 'read': {
      const { references, brokenCount, reason } = result.file
      if (!(await settleFile(tx, searchId, result.file))) return
      return reason === null
        ? outbox.add({ topic: topics.parsed, key: searchId, body: { searchId, file, references, errors: brokenCount } })
        : outbox.add({ topic: topics.faulted, key: searchId, body: { searchId, file, reason } })
    }
  }
}

const NEVER_FINISHED = `The file was begun ${BEGINNINGS_MOST} times, and never read to its end`

const NOT_STORED = 'The file is not in the storage'

function later(error: unknown, deliveries: number): unknown {
  return postpone(error, { delayMs: Math.min(deliveries * LOOK_AGAIN_MS, ELSEWHERE_CAP_MS) })
}

function unread(name: string, reason: string): JobFile {
  return { name, status: 'failed', references: 0, brokenCount: 0, broken: [], reason }
}

function commandOf({ body }: IncomingMessage): StartParsingReferenceFile | null {
  try {
    return readFileCommand(JSON.parse(body))
  } catch {
    // The inbox puts it aside, with this very reason.
    return null
  }
}

function givenUp(receipt: Receipt): string | null {
  if (receipt.kind === 'parked') return receipt.failure?.message ?? receipt.reason
  const parked = receipt.kind === 'duplicate' && receipt.first.settled.kind === 'parked'
  return parked ? 'put aside before' : null
}

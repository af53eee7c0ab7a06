import type { Inbox } from '../../events/inbox/inbox.ts'
import type { IncomingMessage } from '../../events/inbox/port.ts'
import type { Receipt } from '../../events/inbox/receipt.ts'
import { acknowledgementOf } from '../../events/inbox/receipt.ts'
import type { InboxContext, InboxEffect } from '../../events/inbox/settle.ts'
import { OnceError } from '../../ledger/core/errors.ts'
import { defaults } from '../../ledger/core/limits.ts'
import { checkOptionNames, kindOf, wholeOption } from '../../ledger/core/option-names.ts'
import { createListeners } from '../../runtime/listeners.ts'
import type { Deadline } from './deadline.ts'
import { checkedReserveMs, startDeadline, untilDeadline } from './deadline.ts'
import type { LambdaContext, SqsBatchResult, SqsEvent, SqsRecord } from './events.ts'

export interface SqsBatchOptions {
  /**
   * What names a message: copies of it have the same id. A producer that sends again after an error gets a new id from SQS,
   * so use one of the producer's own where there is one.
   * @default the message id of SQS
   */
  readonly id?: (record: SqsRecord) => string
  /** How many messages of a batch are handled at once; of a FIFO queue, how many groups. @default 8 */
  readonly concurrency?: number
  /**
   * Called with a message that is to be handed over again, and the pause that the inbox wants before that: for a call of
   * `ChangeMessageVisibility`.
   * @default the visibility timeout of the queue
   */
  readonly delay?: (record: SqsRecord, delayMs: number) => Promise<unknown>
  /** How long before the end of its invocation no message is begun any more, in milliseconds. @default 500 */
  readonly reserveMs?: number
  /** Gets errors of the inbox itself, and of `delay`. @default console.error */
  readonly onError?: (error: unknown, record: SqsRecord) => void
}

const sqsOptions = ['id', 'concurrency', 'delay', 'reserveMs', 'onError'] satisfies (keyof SqsBatchOptions)[]

/** As Lambda calls it. */
export type LambdaSqsFunction = (event: SqsEvent, context: LambdaContext) => Promise<SqsBatchResult>

/**
 * Handles batches of SQS through an inbox: each message once, and only those that failed are handed over again. The event
 * source mapping has to have `ReportBatchItemFailures`; without it SQS deletes the messages that failed.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createInbox } from 'onceonly/inbox'
 * import { handleSqsBatch } from 'onceonly/lambda'
 * import { postgresStore } from 'onceonly/postgres'
 * import pg from 'pg'
 *
 * const once = createLedger({ store: postgresStore(new pg.Pool({ max: 1 })), background: false })
 * const inbox = createInbox({ ledger: once, consumer: 'shipping', background: false })
 *
 * export const handler = handleSqsBatch(inbox, async (order: { id: string }, { tx }) => {
 *   await tx.query('insert into parcels (id) values (?)', [order.id])
 * })
 * ```
 */
export function handleSqsBatch<Tx, B = unknown>(
  inbox: Inbox<Tx>,
  effect: InboxEffect<Tx, B>,
  options: SqsBatchOptions = {},
): LambdaSqsFunction {
  checkArguments(inbox, effect, options)
  const reserveMs = checkedReserveMs('handleSqsBatch', options.reserveMs)
  const concurrency = wholeOption('handleSqsBatch', 'concurrency', options.concurrency ?? defaults.inboxConcurrency)
  const errors = createListeners(([error, record]: readonly [unknown, SqsRecord]) =>
    options.onError === undefined ? console.error(error) : options.onError(error, record),
  )

  /** Whether the message is settled; then SQS deletes it. */
  async function handled(record: SqsRecord, deadline: Deadline): Promise<boolean> {
    if (deadline.signal.aborted) return false
    try {
      const run = (body: B, context: InboxContext<Tx>) => effect(body, untilDeadline(context, deadline))
      const receipt = await Promise.race([inbox.receive<B>(messageOf(record, options), run), deadline.over])
      return receipt !== undefined && (await acknowledged(record, receipt))
    } catch (error) {
      errors.emit([error, record])
      return false
    }
  }

  async function acknowledged(record: SqsRecord, receipt: Receipt): Promise<boolean> {
    const word = acknowledgementOf(receipt)
    if (word.kind === 'later') await options.delay?.(record, word.delayMs)
    return word.kind === 'done'
  }

  return async (event, context) => {
    const deadline = startDeadline(context, reserveMs)
    try {
      const failed = await failuresIn(linesOf(checkedRecords(event)), concurrency, (record) =>
        handled(record, deadline),
      )
      return { batchItemFailures: failed.map(({ messageId }) => ({ itemIdentifier: messageId })) }
    } finally {
      deadline.stop()
    }
  }
}

/** Messages in the order in which they are handled: of a FIFO queue a line per group, of another one a line per message. */
function linesOf(records: readonly SqsRecord[]): readonly (readonly SqsRecord[])[] {
  const line = (record: SqsRecord) =>
    record.eventSourceARN.endsWith('.fifo')
      ? `${record.eventSourceARN} ${record.attributes.MessageGroupId ?? ''}`
      : record
  return [...Map.groupBy(records, line).values()]
}

/** After a failure nothing more of its line is handled: the messages would overtake the one that failed. */
async function failuresIn(
  lines: readonly (readonly SqsRecord[])[],
  concurrency: number,
  handled: (record: SqsRecord) => Promise<boolean>,
): Promise<readonly SqsRecord[]> {
  const failed: SqsRecord[] = []
  const waiting = [...lines]
  const work = async () => {
    for (let line = waiting.shift(); line !== undefined; line = waiting.shift()) {
      for (const [index, record] of line.entries()) {
        if (await handled(record)) continue
        failed.push(...line.slice(index))
        break
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, lines.length) }, work))
  return failed
}

function messageOf(record: SqsRecord, { id }: SqsBatchOptions): IncomingMessage {
  const { messageId, body, attributes, messageAttributes, eventSourceARN } = record
  const headers: Record<string, string> = {}
  for (const [name, { stringValue }] of Object.entries(messageAttributes ?? {})) {
    if (stringValue !== undefined) headers[name] = stringValue
  }
  const deliveries = Number(attributes.ApproximateReceiveCount)
  return {
    id: id === undefined ? messageId : id(record),
    topic: eventSourceARN.split(':').at(-1) ?? eventSourceARN,
    key: attributes.MessageGroupId ?? null,
    sequence: null,
    body,
    headers,
    deliveries: Number.isSafeInteger(deliveries) ? deliveries : null,
  }
}

function checkedRecords(event: SqsEvent): readonly SqsRecord[] {
  if (Array.isArray(event?.Records) && event.Records.every((each) => typeof each?.messageId === 'string')) {
    return event.Records
  }
  throw new OnceError(
    'bad_option',
    `This event (${kindOf(event)}) is no batch of SQS: it needs \`Records\` with message ids.`,
  )
}

function checkArguments(inbox: unknown, effect: unknown, options: SqsBatchOptions): void {
  if (typeof (inbox as Partial<Inbox<unknown>> | null)?.receive !== 'function') {
    const text = `handleSqsBatch takes an inbox first, made by createInbox({ ledger, consumer }), not ${kindOf(inbox)}.`
    throw new OnceError('bad_option', text, { details: { option: 'inbox' } })
  }
  if (typeof effect !== 'function') {
    const text = `handleSqsBatch takes the effect of a message second, a function, not ${kindOf(effect)}.`
    throw new OnceError('bad_option', text, { details: { option: 'effect' } })
  }
  checkOptionNames('handleSqsBatch', options, sqsOptions)
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { final } from 'onceonly'
import type { LambdaContext, SqsEvent, SqsRecord } from 'onceonly/lambda'
import { handleSqsBatch } from 'onceonly/lambda'
import { onInbox } from '../../support/events/inbox/stage.ts'

interface Order {
  readonly id: string
  readonly wrong?: boolean
}

const STANDARD = 'arn:aws:sqs:us-east-2:123456789012:orders'
const FIFO = `${STANDARD}.fifo`

/** As the documentation of SQS shows it. */
function recordOf(id: string, changes: { group?: string; received?: number; body?: string } = {}): SqsRecord {
  const { group, received = 1, body = JSON.stringify({ id }) } = changes
  return {
    messageId: id,
    body,
    attributes: {
      ApproximateReceiveCount: String(received),
      ...(group === undefined ? {} : { MessageGroupId: group }),
    },
    messageAttributes: { source: { stringValue: 'shop' } },
    eventSourceARN: group === undefined ? STANDARD : FIFO,
  }
}

const batch = (...Records: SqsRecord[]): SqsEvent => ({ Records })

function invocation(leftMs = 30_000): LambdaContext {
  return { awsRequestId: 'c6af9ac6', getRemainingTimeInMillis: () => leftMs }
}

const failedIn = ({ batchItemFailures }: { batchItemFailures: { itemIdentifier: string }[] }) =>
  batchItemFailures.map(({ itemIdentifier }) => itemIdentifier)

onInbox('sqs: only what failed comes again, and a redelivery of the rest does nothing', {}, async (stage) => {
  let broken = true
  const delays: string[] = []
  const handler = handleSqsBatch(
    stage.inbox,
    async ({ id }: Order, { tx, message }) => {
      assert.deepEqual([message.topic, message.headers], ['orders', { source: 'shop' }])
      if (id === 'b' && broken) throw new Error('not now')
      await stage.write(tx, id)
    },
    { delay: async ({ messageId }, delayMs) => void delays.push(`${messageId} ${delayMs > 0}`) },
  )
  const first = await handler(batch(recordOf('a'), recordOf('b'), recordOf('c')), invocation())
  assert.deepEqual(failedIn(first), ['b'])
  assert.deepEqual(delays, ['b true'])
  broken = false
  await stage.advance(60_000)
  const again = batch(recordOf('a', { received: 2 }), recordOf('b', { received: 2 }))
  assert.deepEqual(failedIn(await handler(again, invocation())), [])
  assert.deepEqual((await stage.written()).toSorted(), ['a', 'b', 'c'])
})

onInbox('sqs: a message that will never succeed is parked, and not handed over again', {}, async (stage) => {
  const handler = handleSqsBatch(stage.inbox, (order: Order) => {
    if (order.wrong === true) throw final(new Error('no such order'))
  })
  const body = JSON.stringify({ id: 'a', wrong: true })
  const poison = batch(recordOf('a', { body }), recordOf('b', { body: 'no JSON' }))
  assert.deepEqual(failedIn(await handler(poison, invocation())), [])
  const { rows } = await stage.inbox.deadLetters.list()
  assert.deepEqual(rows.map(({ reason }) => reason).toSorted(), ['final', 'unreadable'])
})

onInbox('sqs: of a FIFO queue nothing overtakes a message of its group that failed', {}, async (stage) => {
  const handler = handleSqsBatch(stage.inbox, async ({ id }: Order, { tx }) => {
    if (id === 'a2') throw new Error('not now')
    await stage.write(tx, id)
  })
  const records = ['a1', 'b1', 'a2', 'a3', 'b2'].map((id) => recordOf(id, { group: id.slice(0, 1) }))
  assert.deepEqual(failedIn(await handler(batch(...records), invocation())), ['a2', 'a3'])
  assert.deepEqual((await stage.written()).toSorted(), ['a1', 'b1', 'b2'])
})

onInbox('sqs: before the invocation ends, what is not done is handed over again', {}, async (stage) => {
  const signals: boolean[] = []
  const gate = Promise.withResolvers<void>()
  const handler = handleSqsBatch(
    stage.inbox,
    async ({ id }: Order, { tx, signal }) => {
      if (id !== 'slow') return stage.write(tx, id)
      signal.addEventListener('abort', () => {
        signals.push(signal.aborted)
        gate.reject(signal.reason as Error)
      })
      return gate.promise
    },
    { reserveMs: 20, concurrency: 1 },
  )
  const first = await handler(batch(recordOf('a'), recordOf('slow'), recordOf('late')), invocation(500))
  assert.deepEqual([failedIn(first), signals], [['slow', 'late'], [true]])
  assert.deepEqual(failedIn(await handler(batch(recordOf('late', { received: 2 })), invocation())), [])
  assert.deepEqual((await stage.written()).toSorted(), ['a', 'late'])
})

onInbox('sqs: an id of the producer names its message, however often it was sent', {}, async (stage) => {
  const handler = handleSqsBatch(stage.inbox, async ({ id }: Order, { tx }) => stage.write(tx, id), {
    id: ({ body }) => (JSON.parse(body) as Order).id,
  })
  const body = JSON.stringify({ id: 'o-1' })
  assert.deepEqual(failedIn(await handler(batch(recordOf('m1', { body })), invocation())), [])
  assert.deepEqual(failedIn(await handler(batch(recordOf('m2', { body })), invocation())), [])
  assert.deepEqual(await stage.written(), ['o-1'])
})

onInbox('sqs: an error of the inbox is reported, and its message comes again', {}, async (stage) => {
  const errors: string[] = []
  const handler = handleSqsBatch(stage.inbox, () => assert.fail('it ran'), {
    id: () => {
      throw new Error('no id here')
    },
    onError: (error, { messageId }) => void errors.push(`${messageId}: ${String(error)}`),
  })
  assert.deepEqual(failedIn(await handler(batch(recordOf('a')), invocation())), ['a'])
  assert.deepEqual(errors, ['a: Error: no id here'])
  await assert.rejects(handler({} as SqsEvent, invocation()), /is no batch of SQS/)
})

test('sqs: wrong first uses get one sentence', () => {
  const loose = handleSqsBatch as unknown as (...args: unknown[]) => unknown
  assert.throws(() => loose({}), { message: /^handleSqsBatch takes an inbox first, made by createInbox/ })
  const inbox = { receive: () => {} }
  assert.throws(() => loose(inbox), { message: /^handleSqsBatch takes the effect of a message second/ })
  assert.throws(() => loose(inbox, () => {}, { parallel: 2 }), /has no option `parallel`/)
  assert.throws(() => loose(inbox, () => {}, { concurrency: 0 }), /`concurrency`/)
})

import type { FastifyInstance } from 'fastify'
import { final, released, type SqlTx, type TransactionContext } from 'onceonly'
import { type BulkItem, createBulk, type ItemWords, readBatch } from 'onceonly/http'
import { refuseHeaderKey } from '../http/batch.ts'
import { checked } from '../http/input.ts'
import { sendInvalid, sentenceOf } from '../http/problem.ts'
import { reportTo } from '../logs.ts'
import type { ServerParts } from '../parts.ts'
import { callerOf } from '../workspaces/authenticate.ts'
import { command, type EscalateCommand, escalateBatch } from './document.ts'
import { type Asking, alreadyText, escalate, NOT_ESCALATABLE_TEXT } from './escalate.ts'

type Parts = Pick<ServerParts, 'once' | 'base'>

/** What is recorded of an item that succeeded, and returned to its caller beside the status. */
interface ItemValue {
  readonly resourceId: string
}

/** The most items that a batch may have, each with a reason of the longest kind. */
const BODY_BYTES_MOST = 2 * 1024 * 1024

/**
 * `POST /case-escalations:batchCreate`: every item is a command of its own, in a transaction of its own. They run one
 * after the other, so that the numbers of the escalations follow the order of the request.
 */
export function addBatchCreate(server: FastifyInstance, { once, base }: Parts): void {
  const bulk = createBulk<EscalateCommand, ItemValue, SqlTx>(once, {
    name: escalateBatch.id,
    onError: reportTo(server.log),
    effect: 'transaction',
    about: {
      documentation: '/docs#case.escalateBatch',
      businessUniqueness: 'A unique index: one open escalation per workspace, case and queue, whatever the key.',
      outbox: 'The event of an item commits with its record, under an id that derives from the item.',
      tests: 'service/escalations-batch.test.ts: killed in the middle, and the same batch on two processes at once',
    },
  })

  server.post(
    '/case-escalations::batchCreate',
    {
      bodyLimit: BODY_BYTES_MOST,
      preHandler: refuseHeaderKey,
      config: { declaration: { ...escalateBatch, repeat: { kind: 'batch', definition: bulk.definition } } },
    },
    async (request, reply) => {
      // 1. What cannot be understood holds no claim: neither a whole batch, nor one of its items.
      const read = readBatch(request.body)
      if ('errors' in read) return sendInvalid(reply, read.errors)
      const { items, malformed } = commandsIn(read.items)
      // 2. Asked before the transactions begin: inside of one it would need a second connection.
      const now = await base.now()
      const { workspaceId: tenant, caller } = callerOf(request)
      // 3. Each item by itself, whatever became of its neighbours.
      const results = await bulk.run({ tenant, caller, batch: read.batchId }, items, (item, work) =>
        escalateItem(work, { tenant, caller, now, sql: base.sql }, item.input),
      )
      const known = new Map([...results, ...malformed].map((result) => [result.itemKey, result]))
      return { batchId: read.batchId, results: read.items.map(({ itemKey }) => known.get(itemKey)) }
    },
  )
}

function commandsIn(given: readonly BulkItem<unknown>[]) {
  const items: BulkItem<EscalateCommand>[] = []
  const malformed: ({ readonly itemKey: string } & ItemWords)[] = []
  for (const { itemKey, input } of given) {
    const result = checked(command, input)
    // A reason that is left out and one that is null are the same command under the key of the item.
    if ('value' in result) items.push({ itemKey, input: { reason: null, ...result.value } })
    else {
      const detail = sentenceOf(result.errors)
      malformed.push({ itemKey, status: 'FAILED', errorCode: 'INVALID_INPUT', retryable: false, detail })
    }
  }
  return { items, malformed }
}

/** What the business refuses is a final outcome of its item; a case that does not exist yet leaves the item's key free. */
async function escalateItem(
  work: TransactionContext<SqlTx>,
  asking: Asking,
  command: EscalateCommand,
): Promise<ItemValue> {
  const escalated = await escalate(work, asking, command)
  switch (escalated.kind) {
    case 'created':
      return { resourceId: escalated.escalation.escalationId }
    case 'already': {
      const data = { resourceId: escalated.escalation.escalationId }
      throw final(coded('ALREADY_ESCALATED', alreadyText(escalated.escalation), data))
    }
    case 'not_escalatable':
      throw final(coded('CASE_NOT_ESCALATABLE', NOT_ESCALATABLE_TEXT))
    case 'case_not_found':
      throw released(coded('CASE_NOT_FOUND', `There is no case ${command.caseId}.`))
  }
}

function coded(code: string, message: string, data?: object): Error {
  return Object.assign(new Error(message), { code, ...(data === undefined ? {} : { data }) })
}

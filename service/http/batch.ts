import type { FastifyReply, FastifyRequest } from 'fastify'
import { sendProblem } from './problem.ts'

/** One key over many outcomes would freeze those that are not done yet: a batch has the keys of its items instead. */
export async function refuseHeaderKey(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  if (request.headers['idempotency-key'] === undefined) return undefined
  const detail = 'A batch takes no Idempotency-Key: the batchId and the itemKey of each item are its keys.'
  const errors = [{ field: 'Idempotency-Key', detail: 'is not allowed on a batch' }]
  return sendProblem(reply, { name: 'idempotency-key-not-allowed', detail, errors })
}

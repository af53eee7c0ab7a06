import type { FastifyReply } from 'fastify'

/** What is wrong with one field of a request. */
export interface FieldError {
  readonly field: string
  readonly detail: string
}

export interface Problem {
  readonly status: number
  /** The last part of the type URI: stable, for programs. */
  readonly name: string
  readonly title: string
  readonly detail: string
  readonly retryable: boolean
  readonly retryAfterMs?: number
  readonly errors?: readonly FieldError[]
}

/** Answers a problem document (RFC 9457). */
export function sendProblem(reply: FastifyReply, { name, ...problem }: Problem): FastifyReply {
  if (problem.retryAfterMs !== undefined) reply.header('retry-after', Math.ceil(problem.retryAfterMs / 1000))
  return reply
    .code(problem.status)
    .type('application/problem+json; charset=utf-8')
    .send(JSON.stringify({ type: `/problems/${name}`, ...problem, instance: reply.request.url }))
}

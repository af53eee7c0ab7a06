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
  /** The word of the business for it, for programs. */
  readonly errorCode?: string
}

/** Every field that is wrong, by name, so that a person can mend all of them at once. */
export function sendInvalid(reply: FastifyReply, errors: readonly FieldError[]): FastifyReply {
  const detail = errors.map((error) => `${error.field} ${error.detail}`).join('; ')
  const problem = { status: 400, name: 'invalid-input', title: 'Invalid input', detail, retryable: false }
  return sendProblem(reply, { ...problem, errors })
}

/** Answers a problem document (RFC 9457). */
export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  if (problem.retryAfterMs !== undefined) reply.header('retry-after', Math.ceil(problem.retryAfterMs / 1000))
  return reply.code(problem.status).type('application/problem+json').send(problemBody(problem, reply.request.url))
}

/** @param instance the address that was asked, where it is known */
export function problemBody({ name, ...problem }: Problem, instance?: string): string {
  return JSON.stringify({ type: `/problems/${name}`, ...problem, instance })
}

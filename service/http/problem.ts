import type { FastifyReply } from 'fastify'
import { errorMember, shouldRetryHeaders } from 'onceonly/http'
import { type ProblemName, problems } from './problems.ts'

/** What is wrong with one field of a request. */
export interface FieldError {
  readonly field: string
  readonly detail: string
}

/** How much of a quota a workspace uses. */
export interface QuotaUse {
  readonly name: string
  readonly limit: number
  readonly used: number
}

export interface Problem {
  readonly name: ProblemName
  readonly detail: string
  /** Where it is another one than the table has. */
  readonly status?: number
  readonly retryAfterMs?: number
  readonly errors?: readonly FieldError[]
  /** The word of the business for it, for programs. */
  readonly errorCode?: string
  /** The quota of the workspace that stands in the way. */
  readonly quota?: QuotaUse
}

/** Every field that is wrong, by name, so that a person can mend all of them at once. */
export function sendInvalid(reply: FastifyReply, errors: readonly FieldError[]): FastifyReply {
  return sendProblem(reply, { name: 'invalid-input', detail: sentenceOf(errors), errors })
}

/** What is wrong with all of them, as one sentence. */
export function sentenceOf(errors: readonly FieldError[]): string {
  return errors.map(({ field, detail }) => `${field} ${detail}`).join('; ')
}

/** Answers a problem document (RFC 9457). */
export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  const status = statusOf(problem)
  if (problem.retryAfterMs !== undefined) reply.header('retry-after', Math.ceil(problem.retryAfterMs / 1000))
  for (const [name, value] of shouldRetryHeaders(status, problems[problem.name].retryable)) reply.header(name, value)
  return reply.code(status).type('application/problem+json').send(problemBody(problem, reply.request.url))
}

/** @param instance the address that was asked, where it is known */
export function problemBody({ name, ...problem }: Problem, instance?: string): string {
  const { title, status, retryable } = problems[name]
  const error = errorMember(problem.status ?? status, problem.errorCode ?? name, problem.detail)
  return JSON.stringify({ type: `/problems/${name}`, title, status, retryable, ...problem, ...error, instance })
}

export function statusOf({ name, status }: Problem): number {
  return status ?? problems[name].status
}

import { decodeValue } from '../../ledger/core/codec.ts'
import type { LedgerRecord, Pointer } from '../../ledger/core/record.ts'
import { unpackFailure } from '../../ledger/outcome.ts'
import type { Execution } from '../../ledger/present.ts'
import type { Awaitable } from '../../runtime/runtime.ts'
import type { Uncommitted } from './early.ts'
import type { Answer } from './exchange.ts'
import { headerOf, headersByName, joined } from './exchange.ts'
import type { ProblemDetail, Situation } from './problem.ts'
import type { ProblemWriter } from './problem-writer.ts'
import type { StoredAnswer } from './record.ts'
import { asStoredAnswer, markedReplayed, replayedAnswer } from './record.ts'
import type { AnswerBinding, RouteDefinition } from './route.ts'

/** What a retry gets from a record: the response itself, or why there is none. */
export type Reply =
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'problem'; readonly situation: Situation; readonly detail: ProblemDetail }

export interface Asked<N> {
  readonly route: RouteDefinition<N>
  readonly operation: string
  readonly method: string
  /** Its content is its key, so that its caller knows of none. @default false */
  readonly keyless?: boolean
  /** Of now: what is rebuilt is rebuilt with its rights. */
  readonly request: N
}

/** With the path and query of the request, for the problem document. */
export type AskedAt<N> = Asked<N> & { readonly target: string }

/** What a twin is answered: the record, with the rights of the current request; or the reason why there is none. */
export function recordedAnswer<N>(
  problems: ProblemWriter,
  execution: Execution<StoredAnswer>,
  asked: AskedAt<N>,
): Awaitable<Answer> {
  const { operation: name, route, target } = asked
  if (execution.kind === 'refused')
    return problems.refuse(execution.error, { name, whileRunning: route.whileRunning, target })
  const reply =
    execution.kind === 'failed'
      ? replyOfFailure(execution.answer, execution.failure, asked)
      : replyOfSuccess(execution.value, asked)
  if (reply instanceof Promise) return reply.then((found) => answerOf(problems, found, target))
  return reply.kind === 'answer' ? reply.answer : answerOf(problems, reply, target)
}

function answerOf(problems: ProblemWriter, reply: Reply, target: string): Answer {
  return reply.kind === 'answer' ? reply.answer : problems.write(reply.situation, { instance: target, ...reply.detail })
}

/** What a success of the record is to a retry. A promise only where something has to be rebuilt. */
export function replyOfSuccess<N>(value: unknown, asked: Asked<N>): Reply | Promise<Reply> {
  const stored = asStoredAnswer(value)
  // Settled by a person or a probe who knew that it happened, but not what was answered.
  return stored === null ? notStored(asked.operation, null) : replyFrom(stored, asked)
}

/** What a recorded failure is to a retry: the answer that refused it; without one, a word that it failed. */
export function replyOfFailure<N>(
  answer: unknown,
  failure: { readonly code?: string },
  asked: Asked<N>,
): Reply | Promise<Reply> {
  const stored = answer === undefined ? null : asStoredAnswer(answer)
  if (stored !== null) return replyFrom(stored, asked)
  const { code } = failure
  const detail = {
    operation: asked.operation,
    detail: 'The request failed, and will not be tried again.',
    ...(code === undefined ? {} : { extra: { code } }),
  }
  return { kind: 'problem', situation: 'request-failed', detail }
}

function replyFrom<N>(given: StoredAnswer, asked: Asked<N>): Reply | Promise<Reply> {
  const { route, operation, method, request, keyless } = asked
  const open = route.bound === undefined ? given : unbound(route.bound, given, request)
  if (open === null) return credentialChanged(operation, keyless)
  const { pointer } = open
  // A pointer that stands in for the body; where the body is kept too, it is only a hint for operators.
  const rebuilds = pointer !== undefined && open.body === undefined
  if (rebuilds && route.rebuild !== undefined) return rebuilt(route.rebuild, pointer, request)
  if (rebuilds || open.missing !== undefined) return notStored(operation, open)
  return { kind: 'answer', answer: replayedAnswer(open, method) }
}

/** The answer without its binding; null for a request that it is not bound to. */
export function unbound<N>(bound: AnswerBinding<N>, stored: StoredAnswer, request: N): StoredAnswer | null {
  const recorded = headerOf(stored.headers, bound.header)
  if (recorded === null) return stored
  if (!bound.same(request, recorded)) return null
  return { ...stored, headers: stored.headers.filter(([name]) => name !== bound.header) }
}

/** What a settled record has of its answer. */
export function storedIn(record: LedgerRecord | Uncommitted): StoredAnswer | null {
  if (record.state === 'failed_terminal') return asStoredAnswer(unpackFailure(record.outcome.data).answer)
  if (record.state !== 'succeeded' || record.outcome.kept !== 'response' || record.outcome.data === null) return null
  return asStoredAnswer(decodeValue(record.outcome.data))
}

export function credentialChanged(operation: string, keyless = false): Extract<Reply, { kind: 'problem' }> {
  const what = keyless ? 'An identical request came' : 'The key was used'
  const detail = `${what} with another credential, and it cannot be determined whether both belong to one caller.`
  return { kind: 'problem', situation: 'credential-changed', detail: { operation, detail } }
}

async function rebuilt<N>(
  rebuild: NonNullable<RouteDefinition<N>['rebuild']>,
  pointer: Pointer,
  request: N,
): Promise<Reply> {
  return { kind: 'answer', answer: markedReplayed(await rebuild(pointer, request)) }
}

function notStored(operation: string, stored: StoredAnswer | null): Reply {
  const original = stored === null ? {} : { extra: { original: originalOf(stored) } }
  return {
    kind: 'problem',
    situation: 'response-not-stored',
    detail: { operation, detail: 'The request was carried out, but its response was not kept.', ...original },
  }
}

/** Enough for a client to know what it missed, and to find it. */
function originalOf({ status, headers, missing, pointer }: StoredAnswer): {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly bytes?: number | null
  readonly sha256?: string | null
  readonly pointer?: Pointer
} {
  const named = headersByName(headers).map(([name, value]) => [name, joined(value)] as const)
  return { status, headers: Object.fromEntries(named), ...missing, ...(pointer === undefined ? {} : { pointer }) }
}

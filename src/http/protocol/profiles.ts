import type { Answer } from './exchange.ts'
import { jsonAnswer } from './exchange.ts'
import { notKept } from './own-headers.ts'
import type { ProblemDetail, Situation } from './problem.ts'
import { errorTypeOf, problemAnswer, retryAfterHeader, shouldRetryHeaders, situations } from './problem.ts'
import type { Finality } from './record.ts'

/** How the protocol speaks: two settings under one name. */
export interface Profile {
  readonly name: ProfileName
  readonly finality: Finality
  answer(base: string, situation: Situation, detail: ProblemDetail): Answer
}

export type ProfileName = 'standard' | 'ietf' | 'stripe'

/** The draft of the IETF asks for 422 where a key is reused. */
const REUSED_IETF = 422

export const profiles: Readonly<Record<ProfileName, Profile>> = {
  standard: {
    name: 'standard',
    finality: 'deterministic',
    answer: (base, situation, detail) => problemAnswer(base, situation, detail),
  },
  ietf: {
    name: 'ietf',
    finality: 'deterministic',
    answer(base, situation, detail) {
      const status = situation === 'idempotency-key-reused' ? REUSED_IETF : undefined
      const { headers, ...answer } = problemAnswer(base, situation, detail, status)
      return { ...answer, headers: [...headers, ['link', documentation(base, situation)]] }
    },
  },
  stripe: {
    name: 'stripe',
    finality: 'snapshot',
    answer: (_base, situation, detail) => stripeAnswer(situation, detail),
  },
}

/** The draft leads clients to what a resource says about its keys by a link, whatever they make of the body. */
function documentation(base: string, situation: Situation): string {
  return `<${base}/${situation}>; rel="describedby"; type="text/html"`
}

/** The shapes of Stripe's first API version, so that its unchanged SDKs understand us. */
function stripeAnswer(situation: Situation, { detail, retryAfterMs }: ProblemDetail): Answer {
  const error = (type: string, code?: string) => ({
    error: { type, ...(code === undefined ? {} : { code }), message: detail },
  })
  const { status, retryable } = situations[situation]
  const headers = [...notKept, ...retryAfterHeader(retryAfterMs), ...shouldRetryHeaders(status, retryable)]
  switch (situation) {
    case 'idempotency-key-reused':
    case 'idempotency-key-invalid':
      return jsonAnswer(400, 'application/json', error('idempotency_error'), headers)
    case 'request-in-progress':
    case 'request-accepted':
      return jsonAnswer(409, 'application/json', error('idempotency_error', 'idempotency_key_in_use'), headers)
    case 'too-many-attempts':
      return jsonAnswer(429, 'application/json', error('rate_limit_error', 'rate_limit'), headers)
    default:
      return jsonAnswer(status, 'application/json', error(errorTypeOf(status), situation), headers)
  }
}

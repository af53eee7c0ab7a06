import type { Answer, Api } from './api.ts'

/** One answer beside the others. */
export interface Shown {
  readonly title: string
  /** What is new, repeated or refused, in one word. */
  readonly badge: string
  readonly tone: 'good' | 'wait' | 'calm' | 'plain'
  readonly facts: readonly (readonly [name: string, value: string])[]
}

export interface Outcome {
  readonly answers: readonly Shown[]
  /** Whether the promise was kept, in one sentence. */
  readonly kept: boolean
  readonly verdict: string
  /** Where an operator sees it. */
  readonly links: readonly { readonly text: string; readonly address: string }[]
}

/** One system, and the thing to press. */
export interface Demonstration {
  readonly name: string
  readonly title: string
  readonly promise: string
  readonly button: string
  readonly operations: string
  run(api: Api): Promise<Outcome>
}

/** An answer of a command: whether it was replayed, refused or new. */
export function shownOf(title: string, answer: Answer, facts: Shown['facts']): Shown {
  const { status, isReplayed } = answer
  const [badge, tone] = isReplayed
    ? (['replayed', 'calm'] as const)
    : status < 300
      ? (['new', 'good'] as const)
      : (['refused', 'wait'] as const)
  return { title, badge, tone, facts: [['Status', String(status)], ...facts] }
}

export function text(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined || value === null ? '–' : JSON.stringify(value)
}

/** The record of a key, where operators see it. */
export function recordOf(key: string): Outcome['links'][number] {
  return { text: 'The record in the console', address: `/console/records?key=${encodeURIComponent(key)}` }
}

/** @throws Error in the words of the server, where a demonstration cannot begin */
export function checked(answer: Answer): Answer {
  if (answer.status < 300) return answer
  throw new Error(`The server answered ${answer.status}: ${text(answer.body['detail'] ?? answer.body['title'])}`)
}

import type { Message } from './message.ts'
import { type Quote, quoteOf, type Said } from './said.ts'

export interface RowProps {
  readonly message: Message
  readonly isOwn: boolean
  readonly quote: Quote | null
  /** It replies to a message that is not here. */
  readonly isParentGone: boolean
  /** What was written at the same time; empty when nothing was. */
  readonly together: string
  readonly reply: (to: Message) => void
  readonly settle: (unsettled: Message, how: 'again' | 'discard') => void
}

/** Enough to recognise them; the thread shows all. */
const TOGETHER_MOST = 5

/** The beginnings of some: long texts of many people, again in each of their rows, would be more than a browser holds. */
export function togetherOf(messages: readonly Pick<Said, 'name' | 'text'>[]): string {
  const some = messages.slice(0, TOGETHER_MOST).map((message) => quoteOf(message).text)
  if (messages.length > TOGETHER_MOST) some.push(`and ${messages.length - TOGETHER_MOST} more`)
  return some.join(', ')
}

/** Whether a row need not be drawn again. A message that changes is another object. */
export function looksSame(now: RowProps, next: RowProps): boolean {
  return (
    now.message === next.message &&
    now.isOwn === next.isOwn &&
    now.together === next.together &&
    now.isParentGone === next.isParentGone &&
    // What it says never changes, but whether it is needed.
    (now.quote === null) === (next.quote === null)
  )
}

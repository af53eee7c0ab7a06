import type { Message } from './message.ts'
import type { Quote } from './said.ts'

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

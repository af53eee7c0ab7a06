import type { Left } from './unsent.ts'

interface LeftLinesProps {
  readonly left: readonly Left[]
  /** The room of this window. */
  readonly room: string
  readonly forget: (left: Left) => void
}

/** What closed windows had not sent, and what became of it. */
export function LeftLines({ left, room, forget }: LeftLinesProps) {
  if (left.length === 0) return null
  return (
    <ul class="left" aria-label="Unsent messages of closed windows">
      {left.map((each) => (
        <li key={each.storageName} data-state={each.state}>
          <span role="status">{wordsOf(each, room)}</span>
          {each.state === 'sending' ? null : (
            <button type="button" class="quiet" onClick={() => forget(each)}>
              Close
            </button>
          )}
        </li>
      ))}
    </ul>
  )
}

function wordsOf({ name, room, messages, state, doubtful }: Left, here: string): string {
  const where = room === here ? '' : ` in ${room}`
  const count = messages === 1 ? '1 message' : `${messages} messages`
  if (state === 'sending') return `Sending ${count} of ${name}${where} from a window that was closed…`
  const sent = messages === 0 ? '' : `Sent ${count} of ${name}${where} from a window that was closed.`
  if (doubtful.length === 0) return sent
  const texts = doubtful.map((text) => `“${text}”`).join(', ')
  return `${sent} No region remembers whether ${name} sent ${texts}. Look before you send it again.`.trim()
}

import { coversPlace } from 'onceonly/stream/protocol'
import type { Gap, Message } from './message.ts'

export interface Thread {
  readonly message: Message
  /** What it replies to, where that is still here. */
  readonly parent: Message | null
  readonly replies: readonly Thread[]
  /** Whether its row stands right under its parent’s. */
  readonly isFirst: boolean
  /** Siblings that were written without knowing of each other. */
  readonly concurrentWith: readonly Message[]
  /** What is missing just before it. */
  readonly gap: Gap | null
  /** Its row, counted from 0 in the order of reading, and the row after its last reply. */
  readonly at: number
  readonly end: number
}

/** A conversation in the order of reading. */
export interface Arranged {
  readonly threads: readonly Thread[]
  /** The same, each reply behind its parent. */
  readonly rows: readonly Thread[]
  /** What is missing after everything that is here. */
  readonly gapAtEnd: Gap | null
}

/** Siblings further away are not compared: with thousands of replies to one message, everyone with everyone is too much. */
const COMPARED_SIBLINGS = 50
/** Replies to replies that are indented: a pane has no room for more, and a browser none for thousands. */
const DEPTH_MOST = 5

export function arranged(messages: ReadonlyMap<string, Message>, gaps: readonly Gap[]): Arranged {
  const replies = Map.groupBy(messages.values(), ({ replyTo }) =>
    // A parent that is no longer kept leaves its replies at the top, rather than nowhere.
    replyTo !== null && messages.has(replyTo) ? replyTo : null,
  )
  const rows: Thread[] = []
  const top = (replies.get(null) ?? []).toSorted(byReading)
  const places = placesOf(gaps, top)

  const repliesTo = ({ id }: Message) => replies.get(id)?.toSorted(byReading) ?? []

  function add(siblings: readonly Message[], index: number, parent: Message | null) {
    const at = rows.length
    const thread = {
      message: siblings[index] as Message,
      parent,
      gap: parent === null ? (places.get(index) ?? null) : null,
      at,
      replies: [] as readonly Thread[],
      isFirst: parent !== null && index === 0,
      end: at + 1,
      // Only for rows that are drawn: comparing is what costs.
      get concurrentWith() {
        return parent === null ? [] : concurrent(siblings, index)
      },
    }
    rows.push(thread)
    return thread
  }

  function threadOf(siblings: readonly Message[], index: number, parent: Message | null, depth: number): Thread {
    const thread = add(siblings, index, parent)
    const { message } = thread
    if (depth < DEPTH_MOST) {
      const below = repliesTo(message)
      thread.replies = below.map((_, each) => threadOf(below, each, message, depth + 1))
    } else thread.replies = flatBelow(message)
    thread.end = rows.length
    return thread
  }

  /** Everything under a message as one list: each names what it replies to. Without recursion, however long the chain is. */
  function flatBelow(root: Message): readonly Thread[] {
    const flat: Thread[] = []
    const open = [{ parent: root, siblings: repliesTo(root), index: 0 }]
    for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
      const { parent, siblings, index } = last
      const message = siblings[index]
      if (message === undefined) {
        open.pop()
        continue
      }
      last.index += 1
      flat.push(add(siblings, index, parent))
      open.push({ parent: message, siblings: repliesTo(message), index: 0 })
    }
    return flat
  }

  const threads = top.map((_, index) => threadOf(top, index, null, 1))
  return { threads, rows, gapAtEnd: places.get(top.length) ?? null }
}

/** A gap stands behind everything that was shown before it; the last one counts where several meet. */
function placesOf(gaps: readonly Gap[], top: readonly Message[]): ReadonlyMap<number, Gap> {
  const places = new Map<number, Gap>()
  for (const gap of gaps) {
    const last = top.findLastIndex(({ shown }) => shown !== null && shown < gap.after)
    places.set(gap.kind === 'missing' ? last + 1 : 0, gap)
  }
  return places
}

function byReading(a: Message, b: Message): number {
  if (a.final !== null && b.final !== null) return a.final - b.final
  if (a.final !== null) return -1
  if (b.final !== null) return 1
  return a.arrival - b.arrival
}

function concurrent(siblings: readonly Message[], index: number): readonly Message[] {
  const message = siblings[index] as Message
  return siblings
    .slice(Math.max(0, index - COMPARED_SIBLINGS), index + COMPARED_SIBLINGS + 1)
    .filter((other) => areConcurrent(message, other))
}

function areConcurrent({ entry: a }: Message, { entry: b }: Message): boolean {
  if (a === null || b === null || a === b) return false
  if (a.client === b.client && a.epoch === b.epoch) return false
  return !coversPlace(a.seen, b) && !coversPlace(b.seen, a)
}

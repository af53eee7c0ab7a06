import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Conversation } from './conversation.ts'
import type { Gap, Message } from './message.ts'
import { Row } from './row.tsx'
import { togetherOf } from './row-props.ts'
import { type Quote, quoteOf } from './said.ts'
import type { Thread } from './threads.ts'
import { further, newest, type Range, rangeOf, staying, type View } from './view.ts'

interface MessagesProps {
  readonly conversation: Conversation
  /** The client whose window this is. */
  readonly self: string
  readonly reply: (to: Message) => void
  readonly settle: (unsettled: Message, how: 'again' | 'discard') => void
}

/** So close to the end counts as at the end: a line, or what zooming leaves over. */
const endPx = 24
/** So close to the first or last row that is drawn, others are drawn: before the reader comes to it. */
const nearPx = 400

/** Everything that one person has before them, every reply under its parent; only rows near to what is seen are drawn. */
export function Messages({ conversation, self, reply, settle }: MessagesProps) {
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState<View>(newest)
  const { threads, rows, gapAtEnd } = conversation.arranged()
  const range = rangeOf(view, rows)
  useSteadyScroll(box, view.kind === 'newest')
  const look = () => {
    if (box.current === null) return
    const abovePx = box.current.scrollTop
    const belowPx = box.current.scrollHeight - abovePx - box.current.clientHeight
    if (range.to === rows.length && belowPx < endPx) return setView(newest)
    if (abovePx < nearPx && range.from > 0) return setView(further(view, rows, 'up'))
    if (belowPx < nearPx && range.to < rows.length) return setView(further(view, rows, 'down'))
    // A reader of the newest messages stays with them; a reader further up is not moved.
    if (view.kind === 'newest' && belowPx >= endPx) setView(staying(view, rows))
  }
  return (
    <div class="messages-frame">
      <div class="messages" ref={box} onScroll={look} role="log" aria-label="Messages" data-rows={rows.length}>
        {rows.length === 0 ? <p class="state">Say something. It is kept, whatever happens to the line.</p> : null}
        <ThreadList threads={threads} range={range} self={self} reply={reply} settle={settle} />
        {gapAtEnd === null ? null : <GapLine gap={gapAtEnd} />}
      </div>
      {view.kind === 'newest' ? null : (
        <button type="button" class="newest" onClick={() => setView(newest)}>
          Newest messages
        </button>
      )}
    </div>
  )
}

/** What is read stays where it is when rows above it come and go; who reads the newest stays at the end. */
function useSteadyScroll(box: { readonly current: HTMLDivElement | null }, atEnd: boolean): void {
  const seen = useRef<{ readonly row: Element; readonly topPx: number } | null>(null)
  // Read while the old rows still stand; the effect below runs once the new ones do.
  seen.current = atEnd || box.current === null ? null : firstSeen(box.current)
  useLayoutEffect(() => {
    if (box.current === null) return
    if (atEnd) box.current.scrollTop = box.current.scrollHeight
    else if (seen.current?.row.isConnected === true) {
      box.current.scrollTop += seen.current.row.getBoundingClientRect().top - seen.current.topPx
    }
  })
}

function firstSeen(box: HTMLElement): { readonly row: Element; readonly topPx: number } | null {
  const { top } = box.getBoundingClientRect()
  for (const row of box.querySelectorAll('.message')) {
    const place = row.getBoundingClientRect()
    if (place.bottom > top) return { row, topPx: place.top }
  }
  return null
}

interface ThreadListProps extends Omit<MessagesProps, 'conversation'> {
  readonly threads: readonly Thread[]
  readonly range: Range
}

/** A parent whose row is not drawn still is the list item that its replies stand in. */
function ThreadList({ threads, range, ...rest }: ThreadListProps) {
  const drawn = threads.filter(({ at, end }) => end > range.from && at < range.to)
  if (drawn.length === 0) return null
  return (
    <ol>
      {drawn.map((thread) => {
        const { message, parent, replies, concurrentWith, gap, at } = thread
        return (
          <li key={message.id} data-message={message.text}>
            {at < range.from ? null : (
              <>
                {gap === null ? null : <GapLine gap={gap} />}
                <Row
                  message={message}
                  isOwn={message.identity.client === rest.self}
                  quote={quoteFor(thread, range)}
                  isParentGone={message.replyTo !== null && parent === null}
                  together={togetherOf(concurrentWith)}
                  reply={rest.reply}
                  settle={rest.settle}
                />
              </>
            )}
            <ThreadList threads={replies} range={range} {...rest} />
          </li>
        )
      })}
    </ol>
  )
}

/** Right under its parent a reply needs no quote. */
function quoteFor({ message, parent, at, isFirst }: Thread, range: Range): Quote | null {
  if (parent === null) return message.quote
  return isFirst && at > range.from ? null : quoteOf(parent)
}

function GapLine({ gap }: { readonly gap: Gap }) {
  return (
    <p class="gap" role="note" data-gap={gap.kind}>
      {saidOfGap(gap)}
    </p>
  )
}

function saidOfGap({ kind, messages }: Gap): string {
  switch (kind) {
    case 'before':
      return 'Messages before this are no longer kept.'
    case 'dropped':
      return 'This window holds no more messages. Reload it to read earlier ones.'
    case 'missing':
      return messages === 1
        ? '1 message is missing here: it is no longer kept.'
        : `${messages} messages are missing here: they are no longer kept.`
  }
}

import { useEffect, useRef } from 'preact/hooks'
import type { Message, MessageState, Thread } from './conversation.ts'
import { colourOf } from './said.ts'

interface MessagesProps {
  readonly threads: readonly Thread[]
  /** The client whose window this is. */
  readonly self: string
  readonly reply: (to: Message) => void
}

/** Everything that one person has before them, every reply under its parent. */
export function Messages({ threads, self, reply }: MessagesProps) {
  const list = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  // Whoever reads the newest stays with the newest; whoever reads above is left alone.
  useEffect(() => {
    if (atEnd.current && list.current !== null) list.current.scrollTop = list.current.scrollHeight
  })
  const watch = () => {
    const box = list.current
    if (box !== null) atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 24
  }
  return (
    <div class="messages" ref={list} onScroll={watch} role="log" aria-label="Messages">
      {threads.length === 0 ? <p class="state">Say something. It is kept, whatever happens to the line.</p> : null}
      <ThreadList threads={threads} self={self} reply={reply} />
    </div>
  )
}

function ThreadList({ threads, self, reply }: MessagesProps) {
  if (threads.length === 0) return null
  return (
    <ol>
      {threads.map(({ message, replies, concurrentWith }) => (
        <li key={message.id} data-message={message.text}>
          <Line
            message={message}
            isOwn={message.identity.client === self}
            concurrentWith={concurrentWith}
            reply={reply}
          />
          <ThreadList threads={replies} self={self} reply={reply} />
        </li>
      ))}
    </ol>
  )
}

interface LineProps {
  readonly message: Message
  readonly isOwn: boolean
  readonly concurrentWith: readonly Message[]
  readonly reply: (to: Message) => void
}

function Line({ message, isOwn, concurrentWith, reply }: LineProps) {
  const { name, text, state, final, entry } = message
  return (
    <article class={isOwn ? 'message own' : 'message'} data-state={state}>
      <Face name={name} />
      <div class="said">
        <p class="meta">
          <b>{name}</b>
          {entry === null ? null : <span class="faint">{regionOf(entry.log)}</span>}
          <Mark state={state} final={final} />
          {concurrentWith.length === 0 ? null : (
            <span
              class="together"
              title={`Written at the same time as: ${concurrentWith.map(({ text }) => text).join(', ')}`}
            >
              at the same time
            </span>
          )}
        </p>
        <p class="text">{text}</p>
      </div>
      <button type="button" class="quiet reply" onClick={() => reply(message)} aria-label={`Reply to “${text}”`}>
        Reply
      </button>
    </article>
  )
}

export function Face({ name }: { readonly name: string }) {
  return (
    <span class="face" data-series={colourOf(name)} aria-hidden="true">
      {name.slice(0, 1)}
    </span>
  )
}

const told: Readonly<Record<MessageState, string>> = {
  pending: 'Only here, until a region takes it',
  accepted: 'On disk in its region; its place may still change',
  final: 'Its place is the same for everybody',
}

function Mark({ state, final }: { readonly state: MessageState; readonly final: number | null }) {
  return (
    <span class={`mark ${state}`} title={told[state]}>
      {state === 'final' ? `#${final}` : state}
    </span>
  )
}

/** A log is named by its region, a dot and its epoch. */
function regionOf(log: string): string {
  return log.replace(/\.[^.]*$/, '')
}

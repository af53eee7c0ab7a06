import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { Badge, type Tone } from '../parts/badge.tsx'
import { useChanges } from './frames.ts'
import type { Message } from './message.ts'
import { Messages } from './messages.tsx'
import type { LinkState, Person } from './people.ts'
import { Face } from './row.tsx'

interface PersonPaneProps {
  readonly person: Person
  readonly regions: readonly string[]
  /** Null where a person cannot leave: alone in a window. */
  readonly leave: (() => void) | null
}

const tones: Readonly<Record<LinkState, Tone>> = { online: 'good', connecting: 'wait', dropped: 'bad', ended: 'bad' }

/** One person's window: who and where, how the line is, what was said, and a place to say something. */
export function PersonPane({ person, regions, leave }: PersonPaneProps) {
  useChanges(person.subscribe)
  const [replyTo, setReplyTo] = useState<Message | null>(null)
  const { name, client, region, link, isSlow, note, conversation } = person
  const settle = useCallback(
    (message: Message, how: 'again' | 'discard') =>
      how === 'again' ? void person.sayAgain(message) : person.discard(message),
    [person],
  )
  return (
    <section class="card person" aria-label={name} data-link={link}>
      <header>
        <h2>
          <Face name={name} />
          {name}
        </h2>
        <Badge tone={tones[link]}>{link}</Badge>
        {leave === null ? null : (
          <button type="button" class="quiet icon end" onClick={leave} aria-label={`Close the window of ${name}`}>
            ×
          </button>
        )}
      </header>
      <div class="switches">
        <select
          aria-label={`Region of ${name}`}
          value={region}
          onChange={({ currentTarget }) => person.move(currentTarget.value)}
        >
          {regions.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        <button
          type="button"
          aria-pressed={link === 'dropped'}
          title="Closes this person's WebSocket, and lets none be opened for half a minute"
          onClick={() => person.drop()}
        >
          Drop 30 s
        </button>
        <button
          type="button"
          aria-pressed={isSlow}
          title="Holds every frame of this person back in this page, half a second each way"
          onClick={() => person.slow(!isSlow)}
        >
          Slow 500 ms
        </button>
        {note === null ? null : (
          <span class="faint" role="status">
            {note}
          </span>
        )}
      </div>
      <Messages conversation={conversation} self={client} reply={setReplyTo} settle={settle} />
      <Compose
        name={name}
        replyTo={replyTo}
        forget={() => setReplyTo(null)}
        say={(text) => {
          setReplyTo(null)
          return person.say(text, replyTo)
        }}
      />
    </section>
  )
}

interface ComposeProps {
  readonly name: string
  readonly replyTo: Message | null
  readonly forget: () => void
  readonly say: (text: string) => Promise<boolean>
}

/** Whatever is longer is a document, and the server refuses it. */
const textCharsMost = 2_000

function Compose({ name, replyTo, forget, say }: ComposeProps) {
  const [text, setText] = useState('')
  const input = useRef<HTMLInputElement>(null)
  // With the keyboard alone it would be reached only after every other message.
  useEffect(() => {
    if (replyTo !== null) input.current?.focus()
  }, [replyTo])
  const submit = (event: Event) => {
    event.preventDefault()
    if (text.trim() === '') return
    setText('')
    void say(text.trim()).then((isKept) => {
      if (!isKept) setText((typed) => (typed === '' ? text : typed))
    })
  }
  return (
    <form class="compose" onSubmit={submit}>
      {replyTo === null ? null : (
        <p class="to">
          <span>{`Reply to ${replyTo.name}: ${replyTo.text}`}</span>
          <button type="button" class="quiet" onClick={forget}>
            Not a reply
          </button>
        </p>
      )}
      <div class="line">
        <input
          ref={input}
          aria-label={`${name} says`}
          placeholder={replyTo === null ? 'Say something' : 'Say something to that'}
          value={text}
          maxLength={textCharsMost}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
          onKeyDown={({ key }) => {
            if (key === 'Escape') forget()
          }}
        />
        <button class="primary">Send</button>
      </div>
    </form>
  )
}

import {
  type ClientPlace,
  type ClientTransport,
  createStreamClient,
  type MessageIdentity,
  type StreamClient,
} from 'onceonly/stream'
import { type Conversation, createConversation } from './conversation.ts'
import type { History } from './history.ts'
import { createLine } from './line.ts'
import { bodyOf, saidOf } from './said.ts'

/** `dropped`: cut off on purpose, for a while. `ended`: this person has left. */
export type LinkState = 'online' | 'connecting' | 'dropped' | 'ended'

const twin = 'Another window had the same identity; this one goes on under a new one.'

/** Somebody who talks: a client of the session protocol, and what it has before it. */
export interface Person {
  readonly name: string
  /** Of the session protocol; another one when it had to be taken anew. */
  readonly client: string
  readonly region: string
  readonly link: LinkState
  readonly isSlow: boolean
  /** What is unusual about the line, for people; null when nothing is. */
  readonly note: string | null
  readonly conversation: Conversation
  say(text: string, replyTo: MessageIdentity | null): void
  move(region: string): void
  drop(): void
  slow(on: boolean): void
  subscribe(changed: () => void): () => void
  stop(): Promise<void>
}

interface PersonOptions {
  readonly name: string
  readonly room: string
  readonly region: string
  readonly transport: ClientTransport
  readonly place: ClientPlace
  /** Shared by everybody on the page: what one of them has seen is known. */
  readonly history: History
}

export async function createPerson(options: PersonOptions): Promise<Person> {
  const { name, room, place, history } = options
  const listeners = new Set<() => void>()
  const changed = () => {
    for (const listener of listeners) listener()
  }
  const conversation = createConversation()
  const line = createLine(options.transport, changed)
  let problem: string | null = null
  /** What became of the identity, for as long as the window is open. */
  let renewed: string | null = null
  const kept = await place.load()
  for (const { number, message } of kept?.pending ?? []) {
    const { client = '', epoch = 1 } = kept?.identity ?? {}
    conversation.sent({ client, epoch, cseq: number }, saidOf(message.body), message.replyTo)
  }

  const client: StreamClient = await createStreamClient({
    room,
    // One that cannot be reached is waited for: where a person is, is for the person to say.
    regions: [options.region],
    transport: line,
    mode: 'at-least-once',
    place,
    from: 'start',
    // The page keeps nothing of what it showed.
    again: 'replay',
    receiver: {
      message(entry) {
        conversation.shown(entry)
        history.add(entry)
        changed()
      },
      ordered(identity, at) {
        conversation.ordered(identity, at)
        changed()
      },
    },
    onStatus: changed,
    onIdentity(identity, why) {
      conversation.renamed(author, identity)
      author = identity
      renewed = why === 'unknown' ? 'The region had forgotten this window; it goes on under a new identity.' : twin
      changed()
    },
    onDoubt(messages) {
      renewed = `Nobody remembers whether ${messages.length} of these messages arrived. Look before you say them again.`
      changed()
    },
    onProblem(error) {
      problem = error instanceof Error ? error.message : String(error)
      changed()
    },
  })
  let author = client.identity

  async function say(text: string, replyTo: MessageIdentity | null): Promise<void> {
    const body = bodyOf({ name, text })
    const { identity, accepted } = await client.send(body, replyTo === null ? {} : { replyTo })
    conversation.sent(identity, { name, text }, replyTo)
    changed()
    await accepted
    conversation.accepted(identity)
    changed()
  }

  function linkOf(): LinkState {
    if (client.status === 'stopped') return 'ended'
    if (line.droppedUntilMs !== null) return 'dropped'
    return client.status === 'connecting' ? 'connecting' : 'online'
  }

  function noteOf(): string | null {
    if (line.droppedUntilMs !== null) {
      return `back in ${Math.max(0, Math.ceil((line.droppedUntilMs - performance.now()) / 1000))} s`
    }
    if (client.status === 'lagging') return 'the region has not seen yet what you have seen'
    return client.status === 'connecting' ? problem : renewed
  }

  return {
    name,
    conversation,
    get client() {
      return client.identity.client
    },
    get region() {
      return client.region
    },
    get link() {
      return linkOf()
    },
    get note() {
      return noteOf()
    },
    get isSlow() {
      return line.isSlow
    },
    say(text, replyTo) {
      say(text, replyTo).catch((error: unknown) => {
        problem = String(error)
        changed()
      })
    },
    move(region) {
      client.moveTo(region)
      changed()
    },
    drop: () => line.drop(),
    slow: (on) => line.slow(on),
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    stop: () => client.stop(),
  }
}

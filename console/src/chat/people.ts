import {
  type ClientTransport,
  createStreamClient,
  type MessageIdentity,
  type OpenClientStorage,
  type RenewReason,
  type StreamClient,
} from 'onceonly/stream'
import { type Author, type Conversation, createConversation } from './conversation.ts'
import type { History } from './history.ts'
import { createLine } from './line.ts'
import type { Message } from './message.ts'
import { isTaken, targetOf } from './problems.ts'
import { createQuietStorage } from './quiet-storage.ts'
import { bodyOf, quoteOf, type Said, saidOf } from './said.ts'
import type { UnsettledStore } from './unsettled.ts'

/** `dropped`: cut off on purpose, for a while. `ended`: this person has left. */
export type LinkState = 'online' | 'connecting' | 'dropped' | 'ended'

export const twin = 'Another window had the same identity; this one continues under a new one.'

const renewedWhy: Readonly<Record<RenewReason, string>> = {
  cloned: twin,
  fork: twin,
  fenced: twin,
  unknown: 'The region had forgotten this window; it continues under a new identity.',
  refused: 'A reply was not sent: the room does not have the message that it replies to.',
}

function doubtfulNote(messages: number): string {
  const which = messages === 1 ? 'one of your messages' : `${messages} of your messages`
  return `No region remembers whether ${which} arrived. Look before you send again.`
}

/** A participant: a client of the session protocol, and what it shows. */
export interface Person {
  readonly name: string
  /** Of the session protocol; another one when it had to be taken again. */
  readonly client: string
  readonly region: string
  readonly link: LinkState
  readonly isSlow: boolean
  /** What is unusual about the line, for people; null when nothing is. */
  readonly note: string | null
  readonly conversation: Conversation
  /** False when it could not be kept, and so was not sent; the note says why. */
  say(text: string, replyTo: Message | null): Promise<boolean>
  /** Sends a message under a new number whose fate under the old one is not known. */
  sayAgain(unsettled: Message): Promise<void>
  /** Lets go of a message that is not sent by itself. */
  discard(unsettled: Message): void
  move(region: string): void
  drop(): void
  slow(on: boolean): void
  subscribe(changed: () => void): () => void
  stop(): Promise<void>
}

export interface PersonOptions {
  readonly name: string
  readonly room: string
  readonly region: string
  readonly transport: ClientTransport
  readonly storage: OpenClientStorage
  readonly unsettled: UnsettledStore
  /** Shared by all people on the page: what one of them has seen is known. */
  readonly history: History
  /** What became of the identity before, for people; null where nothing did. */
  readonly note: string | null
  /** The storage belongs to another window now. */
  lost(): void
}

export async function createPerson(options: PersonOptions): Promise<Person> {
  const { name, room, history } = options
  const listeners = new Set<() => void>()
  const changed = () => {
    for (const listener of listeners) listener()
  }
  const conversation = createConversation()
  const line = createLine(options.transport, changed)
  let problem: string | null = null
  /** What became of the identity, for as long as the window is open. */
  let renewed: string | null = options.note
  const onProblem = (error: unknown) => {
    if (isTaken(error)) options.lost()
    problem = error instanceof Error ? error.message : String(error)
    changed()
  }
  const storage = createQuietStorage(options.storage, onProblem)
  const kept = await storage.load()
  for (const each of options.unsettled.load()) conversation.restore(each)
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
    storage,
    from: 'start',
    // The page keeps nothing of what it showed.
    again: 'replay',
    receiver: {
      message(entry) {
        conversation.shown(entry)
        history.add(entry)
        changed()
      },
      copy: (copy) => conversation.copied(copy),
      ordered(identity, at) {
        conversation.ordered(identity, at)
        changed()
      },
      reset() {
        conversation.reset(client.position.logs)
        changed()
      },
    },
    onStatus: changed,
    onIdentity(identity, why) {
      const before = author
      author = identity
      renewed = renewedWhy[why]
      // The doubtful ones among the pending messages are reported right after this.
      doubtful = []
      queueMicrotask(() => rename(before, identity))
    },
    onDoubt(messages) {
      doubtful = messages.map(({ body }) => saidOf(body))
      renewed = doubtfulNote(messages.length)
    },
    onProblem(error) {
      const target = targetOf(error)
      if (target !== null) conversation.refused(target)
      onProblem(error)
    },
  })
  let author: Author = client.identity
  let doubtful: readonly Said[] = []

  function rename(from: Author, to: Author): void {
    conversation.renamed(from, to, doubtful)
    keepUnsettled()
  }

  function keepUnsettled(): void {
    options.unsettled.save(conversation.unsettled())
    changed()
  }

  async function begin(said: Said, replyTo: MessageIdentity | null): Promise<boolean> {
    try {
      const { identity, accepted } = await client.send(bodyOf(said), replyTo === null ? {} : { replyTo })
      conversation.sent(identity, said, replyTo)
      changed()
      accepted.then(() => conversation.accepted(identity)).then(changed, onProblem)
      return true
    } catch (error) {
      onProblem(error)
      renewed = `Not sent: ${problem}`
      return false
    }
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
    if (client.status !== 'connecting') return renewed
    if (client.refusal !== null) return `${client.region} refused the connection: ${client.refusal}`
    // Why the connection ended is for developers; that it is opened again, and nothing lost, for people.
    return problem === null ? null : `${client.region} does not answer, trying again; what you write is kept`
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
      const quote = replyTo === null ? null : quoteOf(replyTo)
      // Looked up again: an identity that was taken again since then gave it another number.
      const parent = replyTo === null ? null : conversation.find(replyTo.id)
      return begin({ name, text, quote }, parent?.identity ?? null)
    },
    async sayAgain(message) {
      const { text, quote, replyTo } = message
      const parent = replyTo === null ? null : conversation.find(replyTo)
      if (await begin({ name, text, quote }, parent?.identity ?? null)) conversation.forget(message)
      keepUnsettled()
    },
    discard(message) {
      conversation.forget(message)
      keepUnsettled()
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
    async stop() {
      await client.stop()
      await storage.stop()
    },
  }
}

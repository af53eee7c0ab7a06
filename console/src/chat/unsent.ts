import {
  type ClientTransport,
  createIndexedDbStorage,
  createStreamClient,
  identityText,
  type MessageIdentity,
  type PendingSend,
  type StreamClient,
} from 'onceonly/stream'
import { removeIndexedDbStorage } from 'onceonly/stream/browser'
import { targetOf } from './problems.ts'
import { createQuietStorage } from './quiet-storage.ts'
import { saidOf } from './said.ts'
import { holdTab, type KeptPerson, keptPeople, personOf, type Scope, storageNameOf, type Tab } from './tab.ts'
import { createUnsettledStore, type Unsettled, unsettledStorages } from './unsettled.ts'

/** Messages that a closed tab left behind. */
export interface Left {
  /** Of the database that they are in. */
  readonly storageName: string
  readonly name: string
  readonly room: string
  readonly messages: number
  readonly state: 'sending' | 'sent'
  /** Texts of those of which no region remembers whether they arrived: they are not sent again by themselves. */
  readonly doubtful: readonly string[]
}

interface UnsentOptions {
  readonly scope: Scope
  readonly tab: Tab
  readonly regions: readonly string[]
  readonly transport: ClientTransport
  /** Tabs that another window took from this one: it is at work there, whatever the lock says. */
  readonly lost: ReadonlySet<string>
  /** The databases of people who sit in this tab: these send by themselves. */
  seated(storageName: string): boolean
  changed(): void
}

export interface Unsent {
  readonly left: readonly Left[]
  /** Sends what databases hold that no tab is open for, and deletes them. */
  look(): Promise<void>
  /** Releases a database, so that another person in this tab can use it. */
  leave(storageName: string): Promise<void>
  /** The reader has read it. */
  forget(left: Left): void
  stop(): Promise<void>
}

/** Clients that send for closed tabs at a time; the others wait for the next look. */
const SENDING_MOST = 4
/** A client that could send nothing for so long lets others try first: a room may refuse it forever. */
const TURN_MS = 20_000
/** Between two looks whether everything is sent. */
const LOOK_MS = 200

/**
 * Takes over from tabs that were closed. What they had not sent is sent by the client that they were, so that a region
 * which has it already knows it again; then their database is deleted.
 */
export function createUnsent(options: UnsentOptions): Unsent {
  const { scope, tab, regions, transport, changed } = options
  const sending = new Map<string, { end(): Promise<void> }>()
  /** Closed tabs that this one holds. */
  const held = new Set<string>()
  /** How often each database had its turn. */
  const turns = new Map<string, number>()
  let left: readonly Left[] = []
  let stopped = false

  function show(entry: Left): void {
    left = [...left.filter(({ storageName }) => storageName !== entry.storageName), entry]
    changed()
  }

  /** What a window found out whose reader closed it without a decision; the databases of these are deleted. */
  function showUnsettled(names: ReadonlySet<string>): void {
    for (const storageName of unsettledStorages()) {
      const person = personOf(storageName)
      const isOurs = person?.workspace === scope.workspace && person.caller === scope.caller
      if (
        !isOurs ||
        names.has(storageName) ||
        options.seated(storageName) ||
        left.some((each) => each.storageName === storageName)
      )
        continue
      const doubtful = textsOf(createUnsettledStore(storageName).load())
      show({ storageName, name: person.name, room: person.room, messages: 0, state: 'sent', doubtful })
    }
  }

  const turnsOf = (person: KeptPerson) => turns.get(storageNameOf(person)) ?? 0
  const fewestTurns = (people: readonly KeptPerson[]) => Math.min(...people.map(turnsOf))

  async function sendAll(people: readonly KeptPerson[]): Promise<void> {
    const inTurn = people.toSorted((a, b) => turnsOf(a) - turnsOf(b))
    await Promise.all(
      inTurn.map(async (person) => {
        const storageName = storageNameOf(person)
        if (stopped || sending.has(storageName) || options.seated(storageName) || sending.size >= SENDING_MOST) return
        turns.set(storageName, turnsOf(person) + 1)
        const stop = Promise.withResolvers<void>()
        const ended = send(person, storageName, stop.promise)
          .catch((error: unknown) => console.info(`What ${person.name} left behind waits:`, error))
          .finally(() => sending.delete(storageName))
        const end = () => {
          stop.resolve()
          return ended
        }
        sending.set(storageName, { end })
        await ended
      }),
    )
  }

  async function send({ name, room }: KeptPerson, storageName: string, stop: Promise<void>): Promise<void> {
    const unsettled = createUnsettledStore(storageName)
    const kept = createQuietStorage(createIndexedDbStorage({ name: storageName }), () => undefined)
    const { pending = [] } = (await kept.load()) ?? {}
    if (pending.length > 0) {
      let doubtful = unsettled.load()
      const entry = () => ({ storageName, name, room, messages: count, doubtful: textsOf(doubtful) })
      let count = pending.length
      const add = (state: Unsettled['state'], messages: readonly PendingSend[]) => {
        doubtful = [...doubtful, ...messages.map(({ body }) => ({ state, said: saidOf(body) }))]
        count -= messages.length
        unsettled.save(doubtful)
      }
      show({ ...entry(), state: 'sending' })
      const client = await createStreamClient({
        room,
        regions,
        transport,
        mode: 'at-least-once',
        storage: kept,
        receiver: { message: () => undefined },
        onDoubt(messages: readonly PendingSend[]) {
          add('doubtful', messages)
        },
        onProblem(error) {
          const target = targetOf(error)
          if (target === null) return
          const refused = pending.find(({ message: { replyTo } }) => replyTo !== null && isSame(replyTo, target))
          if (refused !== undefined) add('refused', [refused.message])
        },
      })
      const end = await Promise.race([stop.then(() => 'stopped' as const), sent(client)])
      await client.stop()
      if (end === 'stopped') {
        left = left.filter((each) => each.storageName !== storageName)
        changed()
      }
      if (end !== 'sent') return kept.stop()
      show({ ...entry(), state: 'sent' })
    }
    await kept.stop()
    await removeIndexedDbStorage(storageName)
  }

  return {
    get left() {
      return left
    },
    async look() {
      const people = await keptPeople(scope)
      showUnsettled(new Set(people.map(storageNameOf)))
      const tabs = [...Map.groupBy(people, (person) => person.tab)]
      for (const [id, theirs] of tabs.sort(([, a], [, b]) => fewestTurns(a) - fewestTurns(b))) {
        if (stopped || held.has(id) || options.lost.has(id)) continue
        if (id === tab.id) {
          void sendAll(theirs)
          continue
        }
        const closed = await holdTab(id)
        if (closed === null) continue
        held.add(id)
        void sendAll(theirs)
          .then(() => closed.release())
          .finally(() => held.delete(id))
      }
    },
    async leave(storageName) {
      await sending.get(storageName)?.end()
    },
    forget(entry) {
      createUnsettledStore(entry.storageName).save([])
      left = left.filter((each) => each !== entry)
      changed()
    },
    async stop() {
      stopped = true
      await Promise.all([...sending.values()].map(({ end }) => end()))
    },
  }
}

function isSame(a: MessageIdentity, b: MessageIdentity): boolean {
  return identityText(a) === identityText(b)
}

function textsOf(unsettled: readonly Unsettled[]): readonly string[] {
  return unsettled.map(({ said }) => said.text)
}

async function sent(client: Pick<StreamClient, 'pending' | 'status'>): Promise<'sent' | 'stuck'> {
  let least = client.pending
  let sinceMs = performance.now()
  while (client.pending > 0 && client.status !== 'stopped') {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    if (client.pending < least) {
      least = client.pending
      sinceMs = performance.now()
    } else if (performance.now() - sinceMs > TURN_MS) return 'stuck'
  }
  return 'sent'
}

import { type ClientTransport, createIndexedDbStorage, createWebSocketTransport } from 'onceonly/stream'
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { ChatApi } from './api.ts'
import { createHistory, type History } from './history.ts'
import { createPerson, type Person, twin } from './people.ts'
import { firstSeats, keepSeats, type Seat } from './seats.ts'
import { newTab, storageNameOf, type Tab, takeTab } from './tab.ts'
import { createUnsent, type Left, type Unsent } from './unsent.ts'
import { createUnsettledStore } from './unsettled.ts'

/** How often this tab looks whether another one was closed with something unsent. */
const lookMs = 30_000

export interface People {
  readonly people: readonly Person[]
  readonly history: History
  /** What closed tabs had not sent. */
  readonly left: readonly Left[]
  /** Why no participant can join here; null when nothing is wrong. */
  readonly problem: string | null
  join(seat: Seat): void
  leave(person: Person): void
  forget(left: Left): void
}

/** The people of this tab, for as long as the page is open. */
export function usePeople(api: ChatApi, room: string, regions: readonly string[]): People {
  const [people, setPeople] = useState<readonly Person[]>([])
  const [left, setLeft] = useState<readonly Left[]>([])
  const [problem, setProblem] = useState<string | null>(null)
  const history = useMemo(createHistory, [])
  const seating = useMemo(() => createSeating({ api, room, regions, history, setPeople, setLeft, setProblem }), [])
  useEffect(() => {
    seating.begin(firstSeats(regions))
    return () => seating.stop()
  }, [])
  return { people, history, left, problem, join: seating.join, leave: seating.leave, forget: seating.forget }
}

interface SeatingOptions {
  readonly api: ChatApi
  readonly room: string
  readonly regions: readonly string[]
  readonly history: History
  setPeople(people: readonly Person[]): void
  setLeft(left: readonly Left[]): void
  setProblem(problem: string): void
}

function createSeating({ api, room, regions, history, setPeople, setLeft, setProblem }: SeatingOptions) {
  const transport: ClientTransport = createWebSocketTransport({ url: socketOf, token: () => api.key })
  let people: readonly Person[] = []
  let tab: Tab | null = null
  let unsent: Unsent | null = null
  const lostTabs = new Set<string>()
  let looking: ReturnType<typeof setInterval> | undefined
  /** One after the other: each changes who sits where. */
  let turn: Promise<void> = Promise.resolve()

  function next(work: () => Promise<void>): void {
    turn = turn.then(work).catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)))
  }

  function seat(all: readonly Person[]): void {
    people = all
    keepSeats(people)
    setPeople(people)
  }

  const storageNameFor = (id: string, name: string) => storageNameOf({ ...api.scope, tab: id, room, name })

  async function sit({ name, region }: Seat, note: string | null): Promise<void> {
    if (tab === null || people.some((person) => person.name === name)) return
    const { id } = tab
    const storageName = storageNameFor(id, name)
    await unsent?.leave(storageName)
    const kept = createIndexedDbStorage({ name: storageName })
    const unsettled = createUnsettledStore(storageName)
    const person = await createPerson({
      name,
      region,
      room,
      history,
      transport,
      storage: kept,
      unsettled,
      note,
      lost: () => lost(id),
    })
    seat([...people, person])
  }

  /** Another window works in the databases of this tab, and sends what is in them: this one begins again. */
  function lost(id: string): void {
    next(async () => {
      if (tab?.id !== id) return
      lostTabs.add(id)
      const seats = people.map(({ name, region }) => ({ name, region }))
      await end()
      const taken: Tab = await newTab(() => lost(taken.id))
      await open(taken, seats, twin)
    })
  }

  async function open(taken: Tab, seats: readonly Seat[], note: string | null): Promise<void> {
    tab = taken
    for (const each of seats) await sit(each, note)
    const mine: Unsent = createUnsent({
      scope: api.scope,
      tab: taken,
      lost: lostTabs,
      regions,
      transport,
      seated: (storageName) => people.some(({ name }) => storageNameFor(taken.id, name) === storageName),
      changed: () => setLeft(mine.left),
    })
    unsent = mine
    const look = () => void mine.look().catch((error: unknown) => console.info('Closed tabs cannot be found:', error))
    look()
    looking = setInterval(look, lookMs)
  }

  async function end(): Promise<void> {
    clearInterval(looking)
    await unsent?.stop()
    await Promise.all(people.map((person) => person.stop()))
    const before = tab
    tab = null
    people = []
    await before?.release().catch(() => undefined)
  }

  return {
    begin(seats: readonly Seat[]) {
      const names = seats.map(({ name }) => name)
      next(async () => {
        const taken: Tab = await takeTab(api.scope, room, names, () => lost(taken.id))
        await open(taken, seats, null)
      })
    },
    join: (seated: Seat) => next(() => sit(seated, null)),
    leave(person: Person) {
      next(async () => {
        seat(people.filter((each) => each !== person))
        await person.stop()
        await unsent?.look()
      })
    },
    forget: (entry: Left) => unsent?.forget(entry),
    stop: () => next(end),
  }
}

function socketOf(region: string): string {
  const protocol = location.protocol === 'https:' ? 'wss' : 'ws'
  return `${protocol}://${location.host}/chat/socket?region=${encodeURIComponent(region)}`
}

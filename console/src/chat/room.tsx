import type { HistoryEvent } from 'onceonly/stream'
import { createIndexedDbPlace, createWebSocketTransport } from 'onceonly/stream'
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'
import { Loading } from '../parts/states.tsx'
import type { ChatApi, Region } from './api.ts'
import { Diagram } from './diagram.tsx'
import { createHistory } from './history.ts'
import { createPerson, type Person } from './people.ts'
import { PersonPane } from './person.tsx'
import { Regions } from './regions.tsx'
import { keepSeats, keptSeats, type Seat, tabName } from './tab.ts'

const names = ['Ada', 'Grace', 'Linus', 'Barbara', 'Edsger', 'Radia', 'Tony', 'Frances'] as const

/** How often the regions are asked how they are: somebody else may cut one. */
const lookMs = 2_000

interface RoomProps {
  readonly api: ChatApi
  readonly regions: readonly string[]
  readonly room: string
}

/** The people of this page, the regions that they are in, and what caused what. */
export function Room({ api, regions, room }: RoomProps) {
  const [standing, link] = useRegions(api)
  const { people, events, join, leave } = usePeople(api, room, regions)
  const nextName = names.find((name) => !people.some((person) => person.name === name))
  return (
    <>
      <div class="bar">
        <Regions regions={standing} link={api.hasSwitches ? link : null} />
        {nextName === undefined ? null : (
          <button
            type="button"
            class="primary"
            onClick={() => join({ name: nextName, region: regions[people.length % regions.length] ?? '' })}
          >
            Add a person
          </button>
        )}
      </div>
      <div class="floor">
        <div class="people">
          {people.length === 0 ? <Loading /> : null}
          {people.map((person) => (
            <PersonPane
              key={person.name}
              person={person}
              regions={regions}
              leave={people.length === 1 ? null : () => leave(person)}
            />
          ))}
        </div>
        <Diagram events={events} />
      </div>
      <p class="note faint">
        Drop closes a person’s own WebSocket, and this page opens no other one for half a minute. Slow holds their
        frames back in this page, half a second each way. Cut parts the server’s own regions from each other.
      </p>
    </>
  )
}

function useRegions(api: ChatApi): readonly [readonly Region[], (region: string, state: Region['state']) => void] {
  const [regions, setRegions] = useState<readonly Region[]>([])
  const look = useCallback(() => {
    // A server that is away shows in every line already; the next look comes soon.
    api.regions().then(setRegions, () => undefined)
  }, [api])
  useEffect(() => {
    look()
    const timer = setInterval(look, lookMs)
    return () => clearInterval(timer)
  }, [look])
  const link = (region: string, state: Region['state']) => {
    api.link(region, state).then(look, look)
  }
  return [regions, link]
}

interface People {
  readonly people: readonly Person[]
  readonly events: readonly HistoryEvent[]
  join(seat: Seat): void
  leave(person: Person): void
}

function usePeople(api: ChatApi, room: string, regions: readonly string[]): People {
  const [people, setPeople] = useState<readonly Person[]>([])
  const [events, setEvents] = useState<readonly HistoryEvent[]>([])
  const history = useMemo(createHistory, [])
  const tab = useMemo(tabName, [])
  const join = async (seat: Seat): Promise<void> => {
    const person = await createPerson({
      ...seat,
      room,
      history,
      transport: createWebSocketTransport({ url: socketOf, token: () => api.key }),
      place: createIndexedDbPlace({ name: `${await tab}:${room}:${seat.name}` }),
    })
    person.subscribe(() =>
      setEvents((before) => (before.length === history.events.length ? before : [...history.events])),
    )
    setPeople((before) => keeping([...before, person]))
  }
  useEffect(() => {
    void (async () => {
      for (const seat of firstSeats(regions)) await join(seat)
    })()
  }, [])
  return {
    people,
    events,
    join: (seat) => void join(seat),
    leave(person) {
      void person.stop()
      setPeople((before) => keeping(before.filter((each) => each !== person)))
    },
  }
}

function keeping(people: readonly Person[]): readonly Person[] {
  keepSeats(people.map(({ name, region }) => ({ name, region })))
  return people
}

/** Who the address names, or who sat here before, or two people who are far apart. */
function firstSeats(regions: readonly string[]): readonly Seat[] {
  const query = new URLSearchParams(location.search)
  const name = query.get('as')
  const region = regions.find((each) => each === query.get('region')) ?? regions[0] ?? ''
  if (name !== null && name.trim() !== '') return [{ name: name.trim().slice(0, 40), region }]
  const kept = keptSeats().filter((seat) => regions.includes(seat.region))
  if (kept.length > 0) return kept
  return [
    { name: 'Ada', region },
    { name: 'Grace', region: regions[1] ?? region },
  ]
}

function socketOf(region: string): string {
  const protocol = location.protocol === 'https:' ? 'wss' : 'ws'
  return `${protocol}://${location.host}/chat/socket?region=${encodeURIComponent(region)}`
}

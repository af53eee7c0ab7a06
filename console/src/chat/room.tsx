import { useCallback, useEffect, useState } from 'preact/hooks'
import { Failed, Loading } from '../parts/states.tsx'
import type { ChatApi, Region } from './api.ts'
import { Diagram } from './diagram.tsx'
import { LeftLines } from './left.tsx'
import { PersonPane } from './person.tsx'
import { Regions } from './regions.tsx'
import { usePeople } from './use-people.ts'

const names = ['Ada', 'Grace', 'Linus', 'Barbara', 'Edsger', 'Radia', 'Tony', 'Frances'] as const

/** How often the state of the regions is read: another user may cut one. */
const lookMs = 2_000

interface RoomProps {
  readonly api: ChatApi
  readonly regions: readonly string[]
  readonly room: string
}

/** The people of this page, the regions that they are in, and what caused what. */
export function Room({ api, regions, room }: RoomProps) {
  const [standing, link] = useRegions(api)
  const { people, history, left, problem, join, leave, forget } = usePeople(api, room, regions)
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
        <LeftLines left={left} room={room} forget={forget} />
      </div>
      <div class="floor">
        <div class="people">
          {people.length === 0 && problem === null ? <Loading /> : null}
          {problem === null ? null : <Failed message={`This browser keeps nothing for this page: ${problem}`} />}
          {people.map((person) => (
            <PersonPane
              key={person.name}
              person={person}
              regions={regions}
              leave={people.length === 1 ? null : () => leave(person)}
            />
          ))}
        </div>
        <Diagram history={history} />
      </div>
      <p class="note faint">
        Drop closes a person’s own WebSocket, and this page opens no other one for half a minute. Slow holds their
        frames back in this page, half a second each way.
        {api.hasSwitches ? ' Cut parts the server’s own regions from each other.' : null}
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

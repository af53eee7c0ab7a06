import { isStreamName } from 'onceonly/stream/protocol'
import { useEffect, useState } from 'preact/hooks'
import icon from '../icon.svg'
import { Failed, Loading } from '../parts/states.tsx'
import { ThemeSwitch } from '../parts/theme.tsx'
import { type ChatApi, demoKey, openChatApi } from './api.ts'
import { KeyForm } from './key-form.tsx'
import { Room } from './room.tsx'

type Entrance =
  | { readonly kind: 'asking' }
  | { readonly kind: 'needs-key'; readonly refusal: string | null }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'open'; readonly api: ChatApi; readonly regions: readonly string[] }

const keyPlace = 'onceonly-chat-key'

/** Finds a key, then opens the room that the address names. */
export function ChatApp() {
  const [entrance, setEntrance] = useState<Entrance>({ kind: 'asking' })
  const query = new URLSearchParams(location.search)
  const room = query.get('room') ?? 'lobby'
  const begin = () => {
    setEntrance({ kind: 'asking' })
    enter(null).then(setEntrance, (error: unknown) => setEntrance({ kind: 'failed', message: String(error) }))
  }
  useEffect(begin, [])
  const tryKey = (key: string) => {
    enter(key).then(setEntrance, (error: unknown) => setEntrance({ kind: 'needs-key', refusal: messageOf(error) }))
  }
  return (
    <div class="chat">
      <header class="masthead">
        <h1>
          <a class="brand" href="/">
            <img src={icon} alt="" />
            Chat
          </a>
        </h1>
        <span class="soft">{room}</span>
        <div class="end">
          <a href={`/chat?room=${encodeURIComponent(room)}`} target="_blank" rel="noopener">
            Another window
          </a>
          <ThemeSwitch />
        </div>
      </header>
      <main>
        <Inside entrance={entrance} room={room} again={begin} tryKey={tryKey} />
      </main>
    </div>
  )
}

interface InsideProps {
  readonly entrance: Entrance
  readonly room: string
  readonly again: () => void
  readonly tryKey: (key: string) => void
}

function Inside({ entrance, room, again, tryKey }: InsideProps) {
  switch (entrance.kind) {
    case 'asking':
      return <Loading />
    case 'failed':
      return <Failed message={entrance.message} retry={again} />
    case 'needs-key':
      return <KeyForm refusal={entrance.refusal} done={tryKey} />
    case 'open':
      if (!isStreamName(room)) return <Failed message={unnameable(room)} />
      return <Room api={entrance.api} regions={entrance.regions} room={room} />
  }
}

function unnameable(room: string): string {
  return `“${room}” cannot be the name of a room: letters, digits, and . ~ - between them.`
}

/** With the key that was typed, or kept, or that the server gives away on this machine. */
async function enter(typed: string | null): Promise<Entrance> {
  const kept = typed ?? sessionStorage.getItem(keyPlace)
  const demo = kept === null ? await demoKey() : null
  const key = kept ?? demo?.key
  if (key === undefined) return { kind: 'needs-key', refusal: null }
  const { api, regions } = await openChatApi(key, demo?.hasSwitches ?? false)
  if (typed !== null) sessionStorage.setItem(keyPlace, typed)
  return { kind: 'open', api, regions }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

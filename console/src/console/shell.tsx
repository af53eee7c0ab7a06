import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import icon from '../icon.svg'
import { shortCountText } from '../parts/format.ts'
import { Icon, type IconName } from '../parts/icons.tsx'
import { addressOf, navigate } from '../parts/router.ts'
import { ThemeSwitch } from '../parts/theme.tsx'
import { useLive } from './live.ts'
import { needCountText, needs } from './needs.ts'

interface Entry {
  readonly name: IconName
  readonly title: string
}

export const entries: readonly Entry[] = [
  { name: 'overview', title: 'Overview' },
  { name: 'records', title: 'Records' },
  { name: 'guard', title: 'Guard' },
  { name: 'events', title: 'Events' },
  { name: 'sagas', title: 'Sagas' },
  { name: 'runs', title: 'Runs' },
  { name: 'campaigns', title: 'Campaigns' },
  { name: 'streams', title: 'Streams' },
  { name: 'checklist', title: 'Checklist' },
  { name: 'data', title: 'Data' },
  { name: 'audit', title: 'Audit' },
]

interface ShellProps {
  readonly current: IconName | null
  /** Those that the server has something for; the others are left out. */
  readonly entries: readonly Entry[]
  readonly who: string
  readonly note: string | null
  readonly signOut: () => void
  readonly children: ComponentChildren
}

/** The frame around every page: menu, what needs attention, the signed-in user, and sign-out. */
export function Shell({ current, entries: shown, who, note, signOut, children }: ShellProps) {
  const { ticks, isConnected } = useLive()
  const last = ticks.at(-1)
  const waiting = needs(last?.standing ?? null)
  return (
    <div class="shell">
      <a class="skip" href="#main">
        To the content
      </a>
      <aside class="rail">
        <Brand />
        <FindBox />
        <nav aria-label="Pages">
          {shown.map(({ name, title }) => {
            const ofPage = waiting.filter(({ page }) => page === name)
            const count = ofPage.reduce((sum, each) => sum + each.count, 0)
            const text = needCountText({ count, isMore: ofPage.some(({ isMore }) => isMore) })
            return (
              <a
                key={name}
                href={addressOf(name === 'overview' ? [] : [name])}
                {...(name === current ? { 'aria-current': 'page' } : {})}
              >
                <Icon name={name} />
                {title}
                {count === 0 ? null : (
                  <span class="count" title={text} aria-label={`${text} need a person`}>
                    {shortCountText(count)}
                  </span>
                )}
              </a>
            )
          })}
        </nav>
        <div class="foot">
          <span class="who" title={who}>
            {who}
          </span>
          <ThemeSwitch />
          <button type="button" class="quiet" onClick={signOut}>
            Sign out
          </button>
        </div>
      </aside>
      <main id="main" tabIndex={-1}>
        {isConnected ? null : (
          <p class="notice bad" role="status">
            The server does not answer. What you see may be old; the console keeps trying.
          </p>
        )}
        {isConnected && last?.standing === null ? (
          <p class="notice bad" role="status">
            The store does not answer the server. What you see may be old.
          </p>
        ) : null}
        {children}
        {note === null ? null : <p class="note faint">{note}</p>}
      </main>
    </div>
  )
}

/** For whatever id a person has in the hand; `/` leads to it from everywhere. */
function FindBox() {
  const field = useRef<HTMLInputElement>(null)
  const [text, setText] = useState('')
  useEffect(() => {
    const follow = (event: KeyboardEvent) => {
      const isTyping =
        event.target instanceof Element && event.target.closest('input, textarea, select, dialog') !== null
      if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault()
      field.current?.focus()
    }
    document.addEventListener('keydown', follow)
    return () => document.removeEventListener('keydown', follow)
  }, [])
  const find = (event: Event) => {
    event.preventDefault()
    if (text.trim() !== '') navigate(addressOf(['find'], { id: text.trim() }))
  }
  return (
    <form class="find" role="search" aria-label="Find by id" onSubmit={find}>
      <input
        ref={field}
        type="search"
        aria-label="Find by id"
        placeholder="Find by id  /"
        spellcheck={false}
        autocomplete="off"
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
    </form>
  )
}

export function Brand() {
  return (
    <a class="brand" href={addressOf([])}>
      <img src={icon} alt="" />
      Onceonly
    </a>
  )
}

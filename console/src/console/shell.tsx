import type { ComponentChildren } from 'preact'
import icon from '../icon.svg'
import { Icon, type IconName } from '../parts/icons.tsx'
import { addressOf } from '../parts/router.ts'
import { ThemeSwitch } from '../parts/theme.tsx'

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
  { name: 'streams', title: 'Streams' },
  { name: 'checklist', title: 'Checklist' },
]

interface ShellProps {
  readonly current: IconName
  readonly who: string
  readonly signOut: () => void
  readonly children: ComponentChildren
}

/** The frame around every page: where one can go, who one is, and a way out. */
export function Shell({ current, who, signOut, children }: ShellProps) {
  return (
    <div class="shell">
      <a class="skip" href="#main">
        To the content
      </a>
      <aside class="rail">
        <Brand />
        <nav aria-label="Pages">
          {entries.map(({ name, title }) => (
            <a
              key={name}
              href={addressOf(name === 'overview' ? [] : [name])}
              {...(name === current ? { 'aria-current': 'page' } : {})}
            >
              <Icon name={name} />
              {title}
            </a>
          ))}
        </nav>
        <div class="foot">
          <span class="who">{who}</span>
          <ThemeSwitch />
          <button type="button" class="quiet" onClick={signOut}>
            Sign out
          </button>
        </div>
      </aside>
      <main id="main">{children}</main>
    </div>
  )
}

function Brand() {
  return (
    <a class="brand" href={addressOf([])}>
      <img src={icon} alt="" />
      Onceonly
    </a>
  )
}

import { useLocation } from '../parts/router.ts'
import { Empty } from '../parts/states.tsx'
import { entries, Shell } from './shell.tsx'

export function App() {
  const { parts } = useLocation()
  const entry = entries.find(({ name }) => name === (parts[0] ?? 'overview'))
  return (
    <Shell current={entry?.name ?? 'overview'} who="nobody" signOut={() => undefined}>
      <div class="page">
        <header>
          <h1>{entry?.title ?? 'Not found'}</h1>
        </header>
        <section class="card">
          <Empty title={entry === undefined ? 'There is no such page' : 'Nothing here yet'} />
        </section>
      </div>
    </Shell>
  )
}

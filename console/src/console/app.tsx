import type { ComponentChildren } from 'preact'
import { useEffect, useErrorBoundary } from 'preact/hooks'
import type { IconName } from '../parts/icons.tsx'
import { useLocation } from '../parts/router.ts'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { LiveContext, useLiveTicks } from './live.ts'
import { Page } from './page.tsx'
import { AuditPage } from './pages/audit.tsx'
import { CampaignPage } from './pages/campaign.tsx'
import { CampaignsPage } from './pages/campaigns.tsx'
import { ChecklistPage } from './pages/checklist.tsx'
import { DataPage } from './pages/data.tsx'
import { EventsPage } from './pages/events.tsx'
import { FindPage } from './pages/find.tsx'
import { GuardPage } from './pages/guard.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { RecordPage } from './pages/record.tsx'
import { RecordsPage } from './pages/records.tsx'
import { RunPage } from './pages/run.tsx'
import { RunsPage } from './pages/runs.tsx'
import { InstancePage } from './pages/saga-instance.tsx'
import { SagasPage } from './pages/sagas.tsx'
import { StreamPage } from './pages/stream.tsx'
import { StreamsPage } from './pages/streams.tsx'
import { RoleContext, SignIn, signOut, useSession } from './session.tsx'
import { entries, Shell } from './shell.tsx'

export function App() {
  const [session, become] = useSession()
  const live = useLiveTicks(session.kind === 'signed-in')
  const { parts, query } = useLocation()
  const shown = session.kind === 'signed-in' ? entries.filter(({ name }) => session.pages.includes(name)) : entries
  const entry = shown.find(({ name }) => name === (parts[0] ?? 'overview')) ?? null
  const isFinding = parts[0] === 'find'
  useEffect(() => {
    document.title = `${isFinding ? 'Find' : (entry?.title ?? 'Not found')} · Onceonly`
  }, [entry, isFinding])
  switch (session.kind) {
    case 'unknown':
      return <Loading />
    case 'signed-out':
      return <SignIn note={session.note} done={become} />
    case 'signed-in':
      return (
        <RoleContext.Provider value={session.role}>
          <LiveContext.Provider value={live}>
            <Shell
              current={entry?.name ?? null}
              entries={shown}
              who={session.name === session.role ? session.role : `${session.name} (${session.role})`}
              note={session.note}
              signOut={() => void signOut().then(() => become(null))}
            >
              <Drawn key={parts.join('/')}>
                {isFinding ? (
                  <FindPage key={query.get('id')} id={query.get('id') ?? ''} />
                ) : (
                  <Place name={entry?.name ?? null} rest={parts.slice(1)} query={query} />
                )}
              </Drawn>
            </Shell>
          </LiveContext.Provider>
        </RoleContext.Provider>
      )
  }
}

/** A page that cannot be drawn takes nothing with it: the way to the other pages stays. */
function Drawn({ children }: { readonly children: ComponentChildren }) {
  const [error, again] = useErrorBoundary()
  if (error === undefined) return <>{children}</>
  return <Failed message={error instanceof Error ? error.message : String(error)} retry={again} />
}

interface PlaceProps {
  readonly name: IconName | null
  readonly rest: readonly string[]
  readonly query: URLSearchParams
}

function Place({ name, rest: [first, second], query }: PlaceProps) {
  switch (name) {
    case 'overview':
      return <OverviewPage query={query} />
    case 'records':
      return first === undefined ? <RecordsPage query={query} /> : <RecordPage id={first} />
    case 'guard':
      return <GuardPage />
    case 'events':
      return <EventsPage consumer={first === 'inbox' ? (second ?? null) : null} />
    case 'sagas':
      if (first === undefined || second === undefined) return <SagasPage saga={first ?? null} query={query} />
      return <InstancePage saga={first} id={second} />
    case 'runs':
      return first === undefined ? <RunsPage query={query} /> : <RunPage runId={first} />
    case 'campaigns':
      return first === undefined ? <CampaignsPage /> : <CampaignPage runId={first} />
    case 'streams':
      return first === undefined ? <StreamsPage /> : <StreamPage room={first} query={query} />
    case 'checklist':
      return <ChecklistPage />
    case 'data':
      return <DataPage query={query} />
    case 'audit':
      return <AuditPage />
    case null:
      return (
        <Page title="Not found">
          <Empty title="There is no such page" />
        </Page>
      )
  }
}

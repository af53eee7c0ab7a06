import type { RunView } from 'onceonly/run'
import { useState } from 'preact/hooks'
import { Badge } from '../../parts/badge.tsx'
import { ExportButtons } from '../../parts/export-button.tsx'
import { allRows, ListView } from '../../parts/list.tsx'
import { addressOf } from '../../parts/router.ts'
import { ShortId } from '../../parts/short-id.tsx'
import { Time } from '../../parts/timeline.tsx'
import { question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Page } from '../page.tsx'
import { useMayAct } from '../session.tsx'
import { runTone } from '../states.ts'
import type { BulkHow } from './bulk.ts'
import { BulkDialog } from './bulk-dialog.tsx'
import { QueuesPage } from './queues.tsx'
import { askedOf, filtersIn, RunFilters } from './run-filters.tsx'
import { SchedulesPage } from './schedules.tsx'

/** A list leaves out what went in and what came out. */
type RunRow = Omit<RunView, 'steps' | 'input' | 'result'>

/** Durable functions: where each of them is. */
export function RunsPage({ query }: { readonly query: URLSearchParams }) {
  const now = useNow()
  const mayAct = useMayAct()
  const [open, setOpen] = useState<BulkHow | null>(null)
  // The list is asked for again when something was done to it.
  const [turn, setTurn] = useState(0)
  const given = filtersIn(query)
  const asked = askedOf(given)
  const path = question('/runs', asked)
  const view = query.get('view')
  if (view === 'schedules') return <SchedulesPage />
  if (view === 'queues') return <QueuesPage />
  return (
    <Page
      title="Runs"
      actions={
        <>
          <a class="button" href={addressOf(['runs'], { view: 'queues' })}>
            Queues
          </a>
          <a class="button" href={addressOf(['runs'], { view: 'schedules' })}>
            Schedules
          </a>
          <ExportButtons name="runs" rows={() => allRows(path)} />
          {mayAct ? (
            <>
              <button type="button" onClick={() => setOpen('resume')}>
                Resume several …
              </button>
              <button type="button" onClick={() => setOpen('retry')}>
                Retry several …
              </button>
              <button type="button" class="danger" onClick={() => setOpen('cancel')}>
                Cancel several …
              </button>
            </>
          ) : null}
        </>
      }
    >
      <RunFilters given={given} />
      <CardBox isFlush>
        <ListView<RunRow>
          key={turn}
          label="Runs"
          path={path}
          keyOf={({ runId }) => runId}
          addressOf={({ runId }) => addressOf(['runs', runId])}
          empty="No run matches these filters."
          columns={[
            { name: 'Run', width: 'minmax(0, 2fr)', show: ({ runId }) => <ShortId id={runId} /> },
            {
              name: 'Definition',
              width: 'minmax(0, 1fr)',
              isMinor: true,
              show: ({ definition, version }) => `${definition} v${version}`,
            },
            { name: 'State', width: '110px', show: ({ state }) => <Badge tone={runTone(state)}>{state}</Badge> },
            {
              name: 'Failure',
              width: 'minmax(0, 1.6fr)',
              isMinor: true,
              show: ({ failure }) => (failure === null ? '' : <span class="bad">{failure.message}</span>),
            },
            {
              name: 'Next',
              width: '110px',
              isMinor: true,
              show: ({ dueAt }) => (dueAt === null ? '' : <Time atMs={dueAt} nowMs={now} />),
            },
            { name: 'Began', width: '110px', show: ({ startedAt }) => <Time atMs={startedAt} nowMs={now} /> },
          ]}
        />
      </CardBox>
      {open === null ? null : (
        <BulkDialog
          how={open}
          filter={asked}
          done={() => setTurn((before) => before + 1)}
          close={() => setOpen(null)}
        />
      )}
    </Page>
  )
}

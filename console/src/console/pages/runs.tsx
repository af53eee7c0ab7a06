import type { RunView } from 'onceonly/run'
import { Badge } from '../../parts/badge.tsx'
import { ListView } from '../../parts/list.tsx'
import { addressOf, navigate } from '../../parts/router.ts'
import { Time } from '../../parts/timeline.tsx'
import { question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Filters, Page } from '../page.tsx'
import { runTone } from '../states.ts'

/** A list leaves out what went in and what came out. */
type RunRow = Omit<RunView, 'steps' | 'input' | 'result'>

const states = ['running', 'sleeping', 'unknown', 'succeeded', 'failed', 'cancelled']

/** Durable functions: where each of them is. */
export function RunsPage({ query }: { readonly query: URLSearchParams }) {
  const now = useNow()
  const given = {
    state: query.get('state') ?? '',
    definition: query.get('definition') ?? '',
    scope: query.get('scope') ?? '',
  }
  return (
    <Page title="Runs">
      <Filters
        filters={[
          {
            name: 'state',
            label: 'State',
            value: given.state,
            choices: [{ value: '', text: 'any' }, ...states.map((value) => ({ value, text: value }))],
          },
          { name: 'definition', label: 'Definition', value: given.definition },
          { name: 'scope', label: 'Id before the slash', value: given.scope },
        ]}
        change={(name, value) => navigate(addressOf(['runs'], { ...given, [name]: value }), 'replace')}
      />
      <CardBox isFlush>
        <ListView<RunRow>
          label="Runs"
          path={question('/runs', given)}
          keyOf={({ runId }) => runId}
          addressOf={({ runId }) => addressOf(['runs', runId])}
          empty="No run matches these filters."
          columns={[
            { name: 'Run', width: 'minmax(0, 2fr)', show: ({ runId }) => <code>{runId}</code> },
            {
              name: 'Definition',
              width: 'minmax(0, 1fr)',
              isMinor: true,
              show: ({ definition, version }) => `${definition} v${version}`,
            },
            { name: 'State', width: '130px', show: ({ state }) => <Badge tone={runTone(state)}>{state}</Badge> },
            {
              name: 'Continues',
              width: '120px',
              isMinor: true,
              show: ({ dueAt }) => (dueAt === null ? '' : <Time atMs={dueAt} nowMs={now} />),
            },
            { name: 'Began', width: '120px', show: ({ startedAt }) => <Time atMs={startedAt} nowMs={now} /> },
          ]}
        />
      </CardBox>
    </Page>
  )
}

import { Badge } from '../../parts/badge.tsx'
import { ExportButtons } from '../../parts/export-button.tsx'
import { countText } from '../../parts/format.ts'
import { allRows, ListView } from '../../parts/list.tsx'
import { addressOf, navigate } from '../../parts/router.ts'
import { sinceChoices } from '../../parts/time-range.ts'
import { Time } from '../../parts/timeline.tsx'
import type { Column } from '../../parts/virtual-table.tsx'
import { type Card, question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Filters, Page } from '../page.tsx'
import { recordStates } from '../states.ts'
import { UnknownsPage } from './unknowns.tsx'

const filterNames = ['kind', 'operation', 'tenant', 'caller', 'key', 'state', 'since'] as const
type FilterName = (typeof filterNames)[number]

const stateChoices = [
  { value: '', text: 'any' },
  ...Object.entries(recordStates)
    .filter(([state]) => state !== 'vacant')
    .map(([value, { word }]) => ({ value, text: word })),
]

const choices: Readonly<Partial<Record<FilterName, readonly { readonly value: string; readonly text: string }[]>>> = {
  kind: [
    { value: '', text: 'of users' },
    { value: 'internal', text: 'internal' },
    { value: 'all', text: 'all' },
  ],
  state: stateChoices,
  since: sinceChoices,
}

/** Every identity that is remembered, newest first; what the server does for itself is left out until it is asked for. */
export function RecordsPage({ query }: { readonly query: URLSearchParams }) {
  const now = useNow()
  const view = query.get('view') ?? ''
  const given = Object.fromEntries(filterNames.map((name) => [name, query.get(name) ?? '']))
  if (view === 'unknowns') return <UnknownsPage />
  const go = (change: Readonly<Record<string, string>>) => navigate(addressOf(['records'], change), 'replace')
  const path = pathOf(view, given)
  return (
    <Page
      title={titles[view] ?? 'Records'}
      actions={
        <>
          <a class="button" href={addressOf(['records'], { view: view === 'conflicts' ? '' : 'conflicts' })}>
            {view === 'conflicts' ? 'All records' : 'Conflicts'}
          </a>
          <ExportButtons name="records" rows={() => allRows(path)} />
        </>
      }
    >
      <Filters
        filters={filterNames.map((name) => ({
          name,
          label: labels[name],
          value: given[name] ?? '',
          ...(choices[name] === undefined ? {} : { choices: choices[name] }),
        }))}
        change={(name, value) => go({ ...given, [name]: value })}
      />
      <CardBox isFlush>
        <ListView<Card>
          label="Records"
          path={path}
          columns={recordColumns(now)}
          keyOf={({ id }) => id}
          addressOf={({ id }) => addressOf(['records', id])}
          empty="No record matches these filters."
        />
      </CardBox>
    </Page>
  )
}

const titles: Readonly<Record<string, string>> = { stale: 'Stale leases', conflicts: 'Conflicts' }

const labels: Readonly<Record<FilterName, string>> = {
  kind: 'Records',
  operation: 'Operation',
  tenant: 'Tenant',
  caller: 'Caller',
  key: 'Key',
  state: 'State',
  since: 'Claimed',
}

function pathOf(view: string, { kind = '', ...given }: Readonly<Record<string, string>>): string {
  if (view === 'stale' || view === 'conflicts') return question(`/${view}`, { since: given['since'] ?? '' })
  // A named operation is what it is.
  const isNamed = given['operation'] !== ''
  return question('/records', { ...given, kind: kind === 'all' || isNamed ? '' : kind === '' ? 'users' : kind })
}

function recordColumns(now: number): readonly Column<Card>[] {
  return [
    { name: 'Key', width: 'minmax(0, 2fr)', show: ({ identity }) => <code>{identity.key}</code> },
    { name: 'Operation', width: 'minmax(0, 1.6fr)', isMinor: true, show: ({ identity }) => identity.operation },
    { name: 'State', width: '150px', show: ({ state, expired }) => <StateBadge state={state} expired={expired} /> },
    {
      name: 'Tenant / caller',
      width: 'minmax(0, 1.3fr)',
      isMinor: true,
      show: ({ identity }) => `${identity.tenant} / ${identity.caller}`,
    },
    { name: 'Attempts', width: '66px', isMinor: true, show: ({ attempts }) => countText(attempts) },
    { name: 'Replays', width: '66px', isMinor: true, show: ({ replays }) => countText(replays) },
    { name: 'Claimed', width: '110px', show: ({ claimedAt }) => <Time atMs={claimedAt} nowMs={now} /> },
  ]
}

export function StateBadge({ state, expired }: Pick<Card, 'state' | 'expired'>) {
  const { word, tone } = recordStates[state]
  return <Badge tone={expired ? 'plain' : tone}>{expired ? `${word}, expired` : word}</Badge>
}

import { useState } from 'preact/hooks'
import { Badge } from '../../parts/badge.tsx'
import { countText } from '../../parts/format.ts'
import { ListView } from '../../parts/list.tsx'
import { addressOf, navigate } from '../../parts/router.ts'
import { Time } from '../../parts/timeline.tsx'
import type { Column } from '../../parts/virtual-table.tsx'
import { type Card, question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Filters, Page } from '../page.tsx'
import { recordStates } from '../states.ts'
import { UnknownsPage } from './unknowns.tsx'

const filterNames = ['operation', 'tenant', 'caller', 'key', 'state'] as const

const stateChoices = [
  { value: '', text: 'any' },
  ...Object.entries(recordStates)
    .filter(([state]) => state !== 'vacant')
    .map(([value, { word }]) => ({ value, text: word })),
]

/** Every identity that is remembered, newest first, and a search over all of it. */
export function RecordsPage({ query }: { readonly query: URLSearchParams }) {
  const now = useNow()
  const search = query.get('q') ?? ''
  const view = query.get('view') ?? ''
  const given = Object.fromEntries(filterNames.map((name) => [name, query.get(name) ?? '']))
  if (view === 'unknowns') return <UnknownsPage />
  const go = (change: Readonly<Record<string, string>>) => navigate(addressOf(['records'], change), 'replace')
  return (
    <Page title="Records" actions={<Search value={search} search={(q) => go({ q })} />}>
      <Filters
        filters={filterNames.map((name) => ({
          name,
          label: labels[name],
          value: given[name] ?? '',
          ...(name === 'state' ? { choices: stateChoices } : {}),
        }))}
        change={(name, value) => go({ ...given, [name]: value })}
      />
      <CardBox isFlush>
        <ListView<Card>
          label="Records"
          path={pathOf(search, view, given)}
          columns={recordColumns(now)}
          keyOf={({ id }) => id}
          addressOf={({ id }) => addressOf(['records', id])}
          empty={search === '' ? 'No record matches these filters.' : `No record matches “${search}”.`}
        />
      </CardBox>
    </Page>
  )
}

const labels = { operation: 'Operation', tenant: 'Tenant', caller: 'Caller', key: 'Key', state: 'State' } as const

function pathOf(search: string, view: string, given: Readonly<Record<string, string>>): string {
  if (search !== '') return question('/search', { key: search })
  if (view === 'stale' || view === 'conflicts') return question(`/${view}`)
  return question('/records', given)
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

interface SearchProps {
  readonly value: string
  readonly search: (q: string) => void
}

/** One field for whatever an operator was handed: a key, a record id, a guard hash, a message id. */
function Search({ value, search }: SearchProps) {
  const [text, setText] = useState(value)
  const submit = (event: Event) => {
    event.preventDefault()
    search(text.trim())
  }
  return (
    <form class="search" role="search" onSubmit={submit}>
      <input
        type="search"
        aria-label="Search by key, record, guard hash or message"
        placeholder="Key, record, guard hash or message"
        value={text}
        spellcheck={false}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
      <button>Search</button>
    </form>
  )
}

import type { InstanceCard } from 'onceonly/admin'
import { useAsk } from '../../parts/ask.ts'
import { Badge } from '../../parts/badge.tsx'
import { countText } from '../../parts/format.ts'
import { ListView } from '../../parts/list.tsx'
import { addressOf, navigate } from '../../parts/router.ts'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/timeline.tsx'
import { type AnswerOf, question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Filters, Loaded, Page } from '../page.tsx'
import { instanceTone } from '../states.ts'
import { SagaDiagram, SagaMatrix } from './saga-description.tsx'

type Sagas = AnswerOf<'sagas'>

interface SagasPageProps {
  /** Null for the list of them. */
  readonly saga: string | null
  readonly query: URLSearchParams
}

export function SagasPage({ saga, query }: SagasPageProps) {
  const [asked, again] = useAsk<Sagas>(question('/sagas'))
  return (
    <Loaded asked={asked} again={again}>
      {(sagas) => (saga === null ? <All sagas={sagas} /> : <One saga={saga} sagas={sagas} query={query} />)}
    </Loaded>
  )
}

function All({ sagas: { sagas, described } }: { readonly sagas: Sagas }) {
  const names = [...new Set([...described.map(({ name }) => name), ...sagas.map(({ saga }) => saga)])]
  return (
    <Page title="Sagas" about="State machines over messages. Each has a table that decides every event in every state.">
      <CardBox isFlush>
        {names.length === 0 ? (
          <Empty title="No sagas">This server declares none.</Empty>
        ) : (
          <table class="plain">
            <thead>
              <tr>
                <th>Saga</th>
                <th>Instances by state</th>
                <th class="number">Timeouts and deferred events</th>
              </tr>
            </thead>
            <tbody>
              {names.map((name) => {
                const counted = sagas.find(({ saga }) => saga === name)
                return (
                  <tr key={name}>
                    <td>
                      <a href={addressOf(['sagas', name])}>{name}</a>
                    </td>
                    <td>
                      <StateCounts
                        states={counted?.states ?? {}}
                        failed={described.find((each) => each.name === name)?.failed ?? []}
                      />
                    </td>
                    <td class="number">{countText(counted?.pending ?? 0)}</td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        )}
      </CardBox>
    </Page>
  )
}

interface StateCountsProps {
  readonly states: Readonly<Record<string, number>>
  readonly failed: readonly string[]
}

function StateCounts({ states, failed }: StateCountsProps) {
  const counts = Object.entries(states)
  if (counts.length === 0) return <span class="faint">none yet</span>
  return (
    <>
      {counts.map(([state, count]) => (
        <span key={state} class={failed.includes(state) ? 'pair bad' : 'pair'}>
          {state} <b>{countText(count)}</b>
        </span>
      ))}
    </>
  )
}

interface OneProps {
  readonly saga: string
  readonly sagas: Sagas
  readonly query: URLSearchParams
}

function One({ saga, sagas, query }: OneProps) {
  const now = useNow()
  const described = sagas.described.find(({ name }) => name === saga)
  const state = query.get('state') ?? ''
  const choices = [...new Set([...(described?.states ?? []), ...(described?.terminal ?? [])])]
  return (
    <Page title={saga} about={<a href={addressOf(['sagas'])}>Sagas</a>}>
      {described === undefined ? null : (
        <>
          <CardBox title="Diagram">
            <SagaDiagram described={described} />
          </CardBox>
          <CardBox title="What happens to every event in every state" isFlush>
            <SagaMatrix described={described} />
          </CardBox>
        </>
      )}
      <Filters
        filters={[
          {
            name: 'state',
            label: 'State',
            value: state,
            choices: [{ value: '', text: 'any' }, ...choices.map((value) => ({ value, text: value }))],
          },
        ]}
        change={(name, value) => navigate(addressOf(['sagas', saga], { [name]: value }), 'replace')}
      />
      <CardBox title="Instances" isFlush>
        <ListView<InstanceCard>
          label="Instances"
          path={question(`/sagas/${encodeURIComponent(saga)}/instances`, { state })}
          keyOf={({ id }) => id}
          addressOf={({ id }) => addressOf(['sagas', saga, id])}
          empty="No instance is in this state."
          columns={[
            { name: 'Instance', width: 'minmax(0, 2fr)', show: ({ id }) => <code>{id}</code> },
            {
              name: 'State',
              width: 'minmax(0, 1fr)',
              show: ({ state, completedAt }) => (
                <Badge tone={instanceTone(state, completedAt, described?.failed)}>{state}</Badge>
              ),
            },
            { name: 'Version', width: '80px', isMinor: true, show: ({ version }) => String(version) },
            {
              name: 'Began',
              width: '120px',
              isMinor: true,
              show: ({ createdAt }) => <Time atMs={createdAt} nowMs={now} />,
            },
            { name: 'Moved', width: '120px', show: ({ updatedAt }) => <Time atMs={updatedAt} nowMs={now} /> },
          ]}
        />
      </CardBox>
    </Page>
  )
}

import type { UnknownOutcome } from 'onceonly/admin'
import { ListView } from '../../parts/list.tsx'
import { addressOf } from '../../parts/router.ts'
import { Time } from '../../parts/timeline.tsx'
import { question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Page } from '../page.tsx'

/** Everything whose outcome is unknown, whichever part of the system it belongs to; each leads to where it is resolved. */
export function UnknownsPage() {
  const now = useNow()
  return (
    <Page
      title="Unknown outcomes"
      about="Effects that may have happened and are not repeated. Ask the provider, then open one and resolve it."
    >
      <CardBox isFlush>
        <ListView<UnknownOutcome>
          label="Unknown outcomes"
          path={question('/unknowns')}
          keyOf={({ id }) => id}
          addressOf={placeOf}
          empty="Every outcome is known."
          columns={[
            { name: 'What', width: 'minmax(0, 2fr)', show: (row) => <code>{nameOf(row)}</code> },
            { name: 'Operation', width: 'minmax(0, 1.2fr)', isMinor: true, show: operationOf },
            { name: 'Kind', width: '80px', isMinor: true, show: ({ kind }) => kind },
            {
              name: 'Last failure',
              width: 'minmax(0, 2fr)',
              isMinor: true,
              show: ({ failure }) => failure?.message ?? 'its process vanished',
            },
            { name: 'Since', width: '110px', show: ({ since }) => <Time atMs={since} nowMs={now} /> },
          ]}
        />
      </CardBox>
    </Page>
  )
}

function placeOf(row: UnknownOutcome): string {
  return row.kind === 'record' ? addressOf(['records', row.id]) : addressOf(['runs', row.runId])
}

function nameOf(row: UnknownOutcome): string {
  switch (row.kind) {
    case 'record':
      return row.identity.key
    case 'step':
      return `${row.runId}: ${row.step} #${row.tick}`
    case 'run':
      return `${row.runId}: parked`
  }
}

function operationOf(row: UnknownOutcome): string {
  return row.kind === 'record' ? row.identity.operation : row.definition
}

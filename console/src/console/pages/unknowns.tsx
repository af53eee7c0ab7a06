import type { UnknownOutcome } from 'onceonly/admin'
import { ExportButtons } from '../../parts/export-button.tsx'
import { allRows, ListView } from '../../parts/list.tsx'
import { addressOf } from '../../parts/router.ts'
import { Time } from '../../parts/timeline.tsx'
import { question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Page } from '../page.tsx'

/** Everything that waits for a decision, whichever part of the system it belongs to; each leads to where it is ended. */
export function UnknownsPage() {
  const now = useNow()
  return (
    <Page
      title="Unknown outcomes, dead letters"
      about="Effects that may have happened and are not repeated, and messages that were given up. Ask the provider, then open one and end it."
      actions={<ExportButtons name="unknowns" rows={() => allRows(question('/unknowns'))} />}
    >
      <CardBox isFlush>
        <ListView<UnknownOutcome>
          label="Unknown outcomes"
          path={question('/unknowns')}
          keyOf={({ id }) => id}
          addressOf={placeOf}
          empty="Nothing waits for a decision."
          columns={[
            { name: 'What', width: 'minmax(0, 2fr)', show: (row) => <code>{nameOf(row)}</code> },
            { name: 'Operation', width: 'minmax(0, 1.2fr)', isMinor: true, show: operationOf },
            { name: 'Kind', width: '100px', isMinor: true, show: ({ kind }) => kind.replace('_', ' ') },
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
  switch (row.kind) {
    case 'record':
      return addressOf(['records', row.id])
    case 'step':
    case 'run':
      return addressOf(['runs', row.runId])
    case 'dead_letter':
      return row.consumer === null ? addressOf(['events']) : addressOf(['events', 'inbox', row.consumer])
  }
}

function nameOf(row: UnknownOutcome): string {
  switch (row.kind) {
    case 'record':
      return row.identity.key
    case 'step':
      return `${row.runId}: ${row.step} #${row.tick}`
    case 'run':
      return `${row.runId}: parked`
    case 'dead_letter':
      return `${row.topic} ${row.id}`
  }
}

function operationOf(row: UnknownOutcome): string {
  switch (row.kind) {
    case 'record':
      return row.identity.operation
    case 'step':
    case 'run':
      return row.definition
    case 'dead_letter':
      return row.consumer ?? 'outbox'
  }
}

import type { AuditEntry } from 'onceonly/admin'
import { Badge, type Tone } from '../../parts/badge.tsx'
import { ExportButtons } from '../../parts/export-button.tsx'
import { allRows, ListView } from '../../parts/list.tsx'
import { addressOf } from '../../parts/router.ts'
import { Time } from '../../parts/timeline.tsx'
import { question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Page } from '../page.tsx'

const tones: Readonly<Record<AuditEntry['result'], Tone>> = { asked: 'calm', done: 'good', refused: 'bad' }

/** Every action with its operator and its time. Nothing is ever removed from it here. */
export function AuditPage() {
  const now = useNow()
  return (
    <Page
      title="Audit"
      about="Every action of an operator, and every attempt at one."
      actions={<ExportButtons name="audit" rows={() => allRows(question('/audit'))} />}
    >
      <CardBox isFlush>
        <ListView<AuditEntry>
          label="Actions"
          path={question('/audit')}
          keyOf={({ action, result }) => `${action} ${result}`}
          addressOf={targetAddress}
          empty="No actions yet."
          columns={[
            { name: 'What', width: 'minmax(0, 1fr)', show: ({ what }) => what },
            { name: 'On', width: 'minmax(0, 2fr)', isMinor: true, show: ({ target }) => <code>{target}</code> },
            { name: 'By', width: 'minmax(0, 1fr)', show: ({ by, via }) => `${by} (${via})` },
            { name: 'Result', width: '110px', show: ({ result }) => <Badge tone={tones[result]}>{result}</Badge> },
            { name: 'Note', width: 'minmax(0, 1.4fr)', isMinor: true, show: ({ note }) => note ?? '' },
            { name: 'When', width: '110px', show: ({ at }) => <Time atMs={at} nowMs={now} /> },
          ]}
        />
      </CardBox>
    </Page>
  )
}

/** Where the thing can be looked at that was acted on, if it is one that has a page. */
function targetAddress({ target }: AuditEntry): string {
  try {
    const { id, runId } = JSON.parse(target) as { readonly id?: unknown; readonly runId?: unknown }
    if (typeof runId === 'string') return addressOf(['runs', runId])
    if (typeof id === 'string') return addressOf(['records', id])
  } catch {
    // Then it is about no one thing.
  }
  return addressOf(['audit'])
}

import { durationText } from '../../parts/format.ts'
import { ListView } from '../../parts/list.tsx'
import { addressOf } from '../../parts/router.ts'
import { ShortId } from '../../parts/short-id.tsx'
import { type Card, question } from '../api.ts'
import { CardBox, Page } from '../page.tsx'
import { StateBadge } from './records.tsx'

interface GuardRow extends Card {
  readonly original: { readonly type: string; readonly id: string } | null
  readonly ageMs: number
}

/** What the guard holds against duplicates: each with the original and its age. */
export function GuardPage() {
  return (
    <Page
      title="Guard"
      about="Content that was sent once and is not sent again while its window lasts. Forget one to let it through."
    >
      <CardBox isFlush>
        <ListView<GuardRow>
          label="Guarded contents"
          path={question('/guard')}
          keyOf={({ id }) => id}
          addressOf={({ id }) => addressOf(['records', id])}
          empty="No recent sends, or the guard is off."
          columns={[
            { name: 'Hash', width: 'minmax(0, 1fr)', show: ({ identity }) => <ShortId id={identity.key} /> },
            {
              name: 'Original',
              width: 'minmax(0, 2fr)',
              isMinor: true,
              show: ({ original }) => (original === null ? 'none yet' : <ShortId id={original.id} />),
            },
            { name: 'Workspace', width: 'minmax(0, 1fr)', isMinor: true, show: ({ identity }) => identity.tenant },
            {
              name: 'State',
              width: '150px',
              show: ({ state, expired }) => <StateBadge state={state} expired={expired} />,
            },
            { name: 'Blocked', width: '70px', show: ({ replays, inProgress }) => String(replays + inProgress) },
            { name: 'Age', width: '100px', show: ({ ageMs }) => durationText(ageMs) },
          ]}
        />
      </CardBox>
    </Page>
  )
}

import type { RoomCard } from 'onceonly/admin'
import { countText } from '../../parts/format.ts'
import { ListView } from '../../parts/list.tsx'
import { addressOf } from '../../parts/router.ts'
import { Time } from '../../parts/timeline.tsx'
import { question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Page } from '../page.tsx'

/** Rooms of all workspaces: how much was said, and whether every region and the final order have caught up. */
export function StreamsPage() {
  const now = useNow()
  return (
    <Page
      title="Streams"
      about={
        <>
          Rooms, their regions and their logs. <a href="/chat">The chat page</a> shows a room from inside.
        </>
      }
    >
      <CardBox isFlush>
        <ListView<RoomCard>
          label="Rooms"
          path={question('/streams')}
          keyOf={({ room }) => room}
          addressOf={({ room }) => addressOf(['streams', room])}
          empty={
            <>
              <a href="/chat">Open one</a> and say something.
            </>
          }
          columns={[
            { name: 'Room', width: 'minmax(0, 2fr)', show: ({ room }) => <code>{room}</code> },
            { name: 'Entries', width: '90px', show: ({ head }) => countText(head) },
            { name: 'Regions', width: '90px', isMinor: true, show: ({ regions }) => String(regions.length) },
            { name: 'Behind', width: 'minmax(0, 1fr)', isMinor: true, show: behindText },
            {
              name: 'Final order',
              width: '130px',
              isMinor: true,
              show: ({ final }) => (final === null ? 'none' : `${final.head} (${final.behind} wait)`),
            },
            { name: 'Last', width: '110px', show: ({ regions }) => <Last regions={regions} now={now} /> },
          ]}
        />
      </CardBox>
    </Page>
  )
}

function behindText({ regions }: RoomCard): string {
  const late = regions.filter(({ behind }) => behind > 0)
  return late.length === 0 ? 'none' : late.map(({ region, behind }) => `${region} ${behind}`).join(', ')
}

function Last({ regions, now }: Pick<RoomCard, 'regions'> & { readonly now: number }) {
  const atMs = Math.max(0, ...regions.map(({ lastAt }) => lastAt ?? 0))
  return atMs === 0 ? null : <Time atMs={atMs} nowMs={now} />
}

import { Badge } from '../../parts/badge.tsx'
import { ListView } from '../../parts/list.tsx'
import { addressOf } from '../../parts/router.ts'
import { ShortId } from '../../parts/short-id.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/timeline.tsx'
import { type AnswerOf, question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Page } from '../page.tsx'
import { findTone } from '../states.ts'

type Found = AnswerOf<'find'>['rows'][number]

/** Whatever has the id that a person has in the hand; log lines and alerts link here. */
export function FindPage({ id }: { readonly id: string }) {
  const now = useNow()
  return (
    <Page
      title="Find"
      about="Keys, records, messages, escalations, imports, runs, steps, effect keys and request ids, by their whole id."
    >
      <CardBox isFlush>
        {id === '' ? (
          <Empty title="Nothing to find">Type an id into the field of the menu.</Empty>
        ) : (
          <ListView<Found>
            label={`Found for ${id}`}
            path={question('/find', { id })}
            keyOf={({ kind, id: its }) => `${kind} ${its}`}
            addressOf={placeOf}
            empty={`Nothing has the id “${id}”. It may be older than its record is kept.`}
            columns={[
              { name: 'Id', width: 'minmax(0, 2fr)', show: (row) => <ShortId id={row.id} /> },
              { name: 'What', width: 'minmax(0, 1fr)', show: ({ kind }) => kind },
              { name: 'About', width: 'minmax(0, 2fr)', isMinor: true, show: ({ about }) => about },
              {
                name: 'State',
                width: '130px',
                show: ({ state }) => (state === null ? '' : <Badge tone={findTone(state)}>{state}</Badge>),
              },
              {
                name: 'When',
                width: '110px',
                isMinor: true,
                show: ({ at }) => (at === null ? '' : <Time atMs={at} nowMs={now} />),
              },
            ]}
          />
        )}
      </CardBox>
    </Page>
  )
}

/** The server knows the page; what has none stays here. */
function placeOf({ page, id }: Found): string {
  return page === null ? addressOf(['find'], { id }) : `${addressOf([])}${page}`
}

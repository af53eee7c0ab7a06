import type { RoomCard } from 'onceonly/admin'
import { useAsk } from '../../parts/ask.ts'
import { Badge } from '../../parts/badge.tsx'
import { addressOf, navigate } from '../../parts/router.ts'
import { ScrollBox } from '../../parts/scroll.tsx'
import { SpaceTime } from '../../parts/space-time.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/timeline.tsx'
import { type AnswerOf, question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Facts, Filters, Loaded, Page } from '../page.tsx'

type Stream = AnswerOf<'room'>

/** More would not be seen at once, and be slow to draw. */
const drawnMost = 300
const colours = 5

/** One room: where each region stands, and what caused what. */
export function StreamPage({ room, query }: { readonly room: string; readonly query: URLSearchParams }) {
  const path = `/streams/${encodeURIComponent(room)}`
  const [asked, again] = useAsk<Stream>(question(path, { region: query.get('region') ?? '' }))
  return (
    <Loaded asked={asked} again={again}>
      {(stream) => <Detail stream={stream} again={again} />}
    </Loaded>
  )
}

function Detail({ stream, again }: { readonly stream: Stream; readonly again: () => void }) {
  const { room, region, history, textHidden } = stream
  const { final } = room
  const drawn = history.slice(-drawnMost)
  const hosts = [...new Set(drawn.map(({ host }) => host))]
  return (
    <Page
      title={<code>{room.room}</code>}
      about={<a href={addressOf(['streams'])}>Streams</a>}
      actions={
        <button type="button" onClick={again}>
          Look again
        </button>
      }
    >
      <CardBox title="Regions" isFlush>
        <RegionTable regions={room.regions} />
      </CardBox>
      <CardBox title="Final order">
        {final === null ? (
          <p class="soft">This room has no final order.</p>
        ) : (
          <Facts
            facts={[
              ['Places given', String(final.head)],
              ['Entries without a place', String(final.behind)],
              ['Assigned by', final.holder ?? 'no process now'],
            ]}
          />
        )}
      </CardBox>
      <Filters
        filters={[
          {
            name: 'region',
            label: 'As seen in',
            value: region,
            choices: room.regions.map((each) => ({ value: each.region, text: each.region })),
          },
        ]}
        change={(name, value) => navigate(addressOf(['streams', room.room], { [name]: value }), 'replace')}
      />
      <CardBox title="Causal order">
        {drawn.length === 0 ? (
          <Empty title="No messages" />
        ) : (
          <>
            <p class="soft">
              {`An arrow means: who wrote this had seen that. The newest ${drawn.length} of ${history.length} messages.`}
              {textHidden ? ' Operators also see what was said.' : ''}
            </p>
            <ScrollBox>
              <SpaceTime history={drawn} colour={({ host }) => (hosts.indexOf(host) % colours) + 1} />
            </ScrollBox>
          </>
        )}
      </CardBox>
    </Page>
  )
}

function RegionTable({ regions }: Pick<RoomCard, 'regions'>) {
  const now = useNow()
  return (
    <ScrollBox>
      <table class="plain">
        <thead>
          <tr>
            <th>Region</th>
            <th>Merged, by log</th>
            <th class="number">Behind</th>
            <th class="number">Clients</th>
            <th>Last</th>
          </tr>
        </thead>
        <tbody>
          {regions.map(({ region, log, position, behind, clients, lastAt }) => (
            <tr key={region}>
              <th scope="row">{region}</th>
              <td>
                {Object.entries(position).map(([name, count]) => (
                  <div key={name}>
                    <code>{name}</code> {count} {name === log ? <span class="faint">its own</span> : null}
                  </div>
                ))}
              </td>
              <td class="number">{behind === 0 ? '0' : <Badge tone="wait">{String(behind)}</Badge>}</td>
              <td class="number">{clients}</td>
              <td>{lastAt === null ? null : <Time atMs={lastAt} nowMs={now} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollBox>
  )
}

import { useAsk } from '../../parts/ask.ts'
import { storedText } from '../../parts/format.ts'
import { Empty } from '../../parts/states.tsx'
import { question } from '../api.ts'
import { CardBox, Loaded, Page } from '../page.tsx'

/** The rooms that the server knows; the chat page shows them from inside, with the diagram of what caused what. */
export function StreamsPage() {
  const [asked, again] = useAsk<{ readonly rooms: readonly Readonly<Record<string, unknown>>[] }>(question('/streams'))
  return (
    <Page
      title="Streams"
      about={
        <>
          Rooms, their regions and their logs. <a href="/chat">The chat page</a> shows a room from inside, with the
          diagram of what caused what.
        </>
      }
    >
      <CardBox title="Rooms">
        <Loaded asked={asked} again={again}>
          {({ rooms }) =>
            rooms.length === 0 ? (
              <Empty title="No rooms">
                <a href="/chat">Open one</a> and say something.
              </Empty>
            ) : (
              <pre class="stored">{storedText(rooms)}</pre>
            )
          }
        </Loaded>
      </CardBox>
    </Page>
  )
}

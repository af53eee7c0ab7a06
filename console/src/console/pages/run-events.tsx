import { useState } from 'preact/hooks'
import { useAsk } from '../../parts/ask.ts'
import { storedText } from '../../parts/format.ts'
import { StoredText } from '../../parts/scroll.tsx'
import { Time } from '../../parts/timeline.tsx'
import { type AnswerOf, question } from '../api.ts'
import { CardBox, Loaded } from '../page.tsx'
import { useMayAct } from '../session.tsx'

/** As many as the server gives at once. */
const PAGE = 500

interface RunEventsProps {
  readonly runId: string
  readonly now: number
}

/** What the run emitted, in order; a page at a time, as it is read by cursor. */
export function RunEvents({ runId, now }: RunEventsProps) {
  const mayAct = useMayAct()
  const [after, setAfter] = useState(0)
  const path = `/runs/${encodeURIComponent(runId)}/events`
  const [asked, again] = useAsk<AnswerOf<'run.events'>>(question(path, { after: String(after) }))
  return (
    <CardBox title="Events" isFlush>
      <Loaded asked={asked} again={again}>
        {({ events, cursor }) => (
          <>
            {events.map((event) => (
              <details class="folded step" key={event.cursor}>
                <summary>
                  <span class="tick">{event.cursor}</span>
                  <b>{event.name}</b>
                  <Time atMs={event.at} nowMs={now} />
                </summary>
                <StoredText>{mayAct ? storedText(event.value) : 'Visible to operators only.'}</StoredText>
              </details>
            ))}
            {after === 0 && events.length < PAGE ? null : (
              <div class="toolbar">
                <button type="button" disabled={after === 0} onClick={() => setAfter(0)}>
                  First events
                </button>
                <button type="button" disabled={events.length < PAGE} onClick={() => setAfter(cursor)}>
                  Next events
                </button>
              </div>
            )}
          </>
        )}
      </Loaded>
    </CardBox>
  )
}

import { useAsk } from '../../parts/ask.ts'
import { Badge } from '../../parts/badge.tsx'
import { countText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/timeline.tsx'
import { type AnswerOf, question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Loaded, Page } from '../page.tsx'

/** Queues of runs, with what waits in each and why. */
export function QueuesPage() {
  const now = useNow()
  const [asked, again] = useAsk<AnswerOf<'queue.list'>>(question('/queues'))
  return (
    <Page title="Queues" about={<a href={addressOf(['runs'])}>Runs</a>}>
      <CardBox isFlush>
        <Loaded asked={asked} again={again}>
          {(queues) =>
            queues.length === 0 ? (
              <Empty title="No queues">One is entered when an engine that has it begins.</Empty>
            ) : (
              <table class="plain">
                <thead>
                  <tr>
                    <th>Queue</th>
                    <th>State</th>
                    <th class="number">Waiting</th>
                    <th class="number">Key without a place</th>
                    <th class="number">Later</th>
                    <th class="number">Running</th>
                    <th class="number">Unknown</th>
                    <th>Oldest waits since</th>
                  </tr>
                </thead>
                <tbody>
                  {queues.map(({ name, paused, waiting, blocked, delayed, running, unknown, waitingSince }) => (
                    <tr key={name} class={unknown > 0 ? 'alarming' : ''}>
                      <td>
                        <code>{name}</code>
                      </td>
                      <td>
                        <Badge tone={paused ? 'wait' : 'good'}>{paused ? 'paused' : 'active'}</Badge>
                      </td>
                      <td class="number">{countText(waiting)}</td>
                      <td class="number">{countText(blocked)}</td>
                      <td class="number">{countText(delayed)}</td>
                      <td class="number">{countText(running)}</td>
                      <td class="number">{countText(unknown)}</td>
                      <td>{waitingSince === null ? 'none' : <Time atMs={waitingSince} nowMs={now} />}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )
          }
        </Loaded>
      </CardBox>
    </Page>
  )
}

import { useAsk } from '../../parts/ask.ts'
import { Badge } from '../../parts/badge.tsx'
import { countText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/timeline.tsx'
import { type AnswerOf, question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Loaded, Page } from '../page.tsx'

/** Schedules, with the next tick of each: one that is past has no process. */
export function SchedulesPage() {
  const now = useNow()
  const [asked, again] = useAsk<AnswerOf<'schedules'>>(question('/schedules'))
  return (
    <Page title="Schedules" about={<a href={addressOf(['runs'])}>Runs</a>}>
      <CardBox isFlush>
        <Loaded asked={asked} again={again}>
          {(schedules) =>
            schedules.length === 0 ? (
              <Empty title="No schedules">One is entered when an engine that has it begins.</Empty>
            ) : (
              <table class="plain">
                <thead>
                  <tr>
                    <th>Schedule</th>
                    <th>Times</th>
                    <th>State</th>
                    <th>Next</th>
                    <th class="number">Started</th>
                    <th class="number">Left out</th>
                  </tr>
                </thead>
                <tbody>
                  {schedules.map(({ name, cron, timezone, paused, nextAt, started, skipped }) => {
                    const isLate = !paused && nextAt !== null && nextAt < now
                    return (
                      <tr key={name} class={isLate ? 'alarming' : ''}>
                        <td>
                          <code>{name}</code>
                        </td>
                        <td>{`${cron} ${timezone}`}</td>
                        <td>
                          <Badge tone={paused ? 'wait' : isLate ? 'bad' : 'good'}>
                            {paused ? 'paused' : isLate ? 'late' : 'active'}
                          </Badge>
                        </td>
                        <td>{nextAt === null ? 'none' : <Time atMs={nextAt} nowMs={now} />}</td>
                        <td class="number">{countText(started)}</td>
                        <td class="number">{countText(skipped)}</td>
                      </tr>
                    )
                  })}
                </tbody>
              </table>
            )
          }
        </Loaded>
      </CardBox>
    </Page>
  )
}

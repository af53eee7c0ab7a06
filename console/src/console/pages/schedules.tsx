import { useState } from 'preact/hooks'
import { useAsk } from '../../parts/ask.ts'
import { Badge } from '../../parts/badge.tsx'
import { ActionDialog } from '../../parts/dialog.tsx'
import { countText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { ShortId } from '../../parts/short-id.tsx'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/timeline.tsx'
import { type AnswerOf, act, question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Loaded, Page } from '../page.tsx'
import { useMayAct } from '../session.tsx'

type How = 'pause' | 'resume' | 'trigger'

const words = {
  pause: {
    verb: 'Pause',
    title: 'Pause the schedule',
    about: 'No tick starts anything until it is resumed. Runs that have begun continue.',
  },
  resume: {
    verb: 'Resume',
    title: 'Resume the schedule',
    about: 'It continues with its next tick. Those that passed meanwhile start nothing.',
  },
  trigger: {
    verb: 'Run now',
    title: 'Start a run of the schedule',
    about:
      'It runs now, beside its ticks, as soon as a process that has the schedule sees it; also while it is paused.',
  },
} as const satisfies Readonly<Record<How, object>>

/** Schedules, with the next tick of each: one that is past has no process. */
export function SchedulesPage() {
  const now = useNow()
  const mayAct = useMayAct()
  const [chosen, choose] = useState<{ readonly name: string; readonly how: How } | null>(null)
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
                    <th>Last run</th>
                    <th class="number">Started</th>
                    <th class="number">Left out</th>
                    {mayAct ? (
                      <th>
                        <span class="visually-hidden">Actions</span>
                      </th>
                    ) : null}
                  </tr>
                </thead>
                <tbody>
                  {schedules.map(
                    ({ name, run, cron, timezone, overlap, paused, nextAt, lastRun, started, skipped }) => {
                      const isLate = !paused && nextAt !== null && nextAt < now
                      return (
                        <tr key={name} class={isLate ? 'alarming' : ''}>
                          <td>
                            <code>{name}</code> <span class="soft">{run}</span>
                          </td>
                          <td>{`${cron} ${timezone}, overlap: ${overlap}`}</td>
                          <td>
                            <Badge tone={paused ? 'wait' : isLate ? 'bad' : 'good'}>
                              {paused ? 'paused' : isLate ? 'late' : 'active'}
                            </Badge>
                          </td>
                          <td>{nextAt === null ? 'none' : <Time atMs={nextAt} nowMs={now} />}</td>
                          <td>
                            {lastRun === null ? (
                              'none'
                            ) : (
                              <a href={addressOf(['runs', lastRun])}>
                                <ShortId id={lastRun} />
                              </a>
                            )}
                          </td>
                          <td class="number">{countText(started)}</td>
                          <td class="number">{countText(skipped)}</td>
                          {mayAct ? (
                            <td class="acts">
                              {([paused ? 'resume' : 'pause', 'trigger'] as const).map((how) => (
                                <button
                                  key={how}
                                  type="button"
                                  aria-label={`${words[how].verb}: ${name}`}
                                  onClick={() => choose({ name, how })}
                                >
                                  {words[how].verb}
                                </button>
                              ))}
                            </td>
                          ) : null}
                        </tr>
                      )
                    },
                  )}
                </tbody>
              </table>
            )
          }
        </Loaded>
      </CardBox>
      {chosen === null ? null : (
        <ActionDialog
          title={`${words[chosen.how].title} ${chosen.name}?`}
          confirm={words[chosen.how].title}
          isDangerous={chosen.how === 'pause'}
          act={async () => {
            const { name, how } = chosen
            await act({ action: `schedule.${how}`, name })
            again()
          }}
          close={() => choose(null)}
        >
          <p>{words[chosen.how].about}</p>
        </ActionDialog>
      )}
    </Page>
  )
}

import { useState } from 'preact/hooks'
import { useAsk } from '../../parts/ask.ts'
import { Badge } from '../../parts/badge.tsx'
import { ActionDialog } from '../../parts/dialog.tsx'
import { countText, durationText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/timeline.tsx'
import { type AnswerOf, act, question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Loaded, Page } from '../page.tsx'
import { useMayAct } from '../session.tsx'

interface Chosen {
  readonly name: string
  readonly how: 'pause' | 'resume'
}

type Limits = Pick<AnswerOf<'queue.list'>[number], 'concurrency' | 'perKey' | 'rate'>

function limitsText({ concurrency, perKey, rate }: Limits): string {
  const limits = [
    ...(concurrency === null ? [] : [`${countText(concurrency)} at once`]),
    ...(perKey === null ? [] : [`${countText(perKey)} per key`]),
    ...(rate === null ? [] : [`${countText(rate.limit)} in ${durationText(rate.perMs)}`]),
  ]
  return limits.length === 0 ? 'none' : limits.join(', ')
}

/** Queues of runs, with what waits in each and why. */
export function QueuesPage() {
  const now = useNow()
  const mayAct = useMayAct()
  const [chosen, choose] = useState<Chosen | null>(null)
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
                    <th>Limits</th>
                    <th class="number">Waiting</th>
                    <th class="number">Key without a place</th>
                    <th class="number">Later</th>
                    <th class="number">Running</th>
                    <th class="number">Unknown</th>
                    <th>Oldest waits since</th>
                    {mayAct ? (
                      <th>
                        <span class="visually-hidden">Actions</span>
                      </th>
                    ) : null}
                  </tr>
                </thead>
                <tbody>
                  {queues.map(
                    ({ name, paused, waiting, blocked, delayed, running, unknown, waitingSince, ...limits }) => (
                      <tr key={name} class={unknown > 0 ? 'alarming' : ''}>
                        <td>
                          <a href={addressOf(['runs'], { queue: name })}>
                            <code>{name}</code>
                          </a>
                        </td>
                        <td>
                          <Badge tone={paused ? 'wait' : 'good'}>{paused ? 'paused' : 'active'}</Badge>
                        </td>
                        <td>{limitsText(limits)}</td>
                        <td class="number">{countText(waiting)}</td>
                        <td class="number">{countText(blocked)}</td>
                        <td class="number">{countText(delayed)}</td>
                        <td class="number">{countText(running)}</td>
                        <td class="number">{countText(unknown)}</td>
                        <td>{waitingSince === null ? 'none' : <Time atMs={waitingSince} nowMs={now} />}</td>
                        {mayAct ? (
                          <td class="acts">
                            <button
                              type="button"
                              aria-label={`${paused ? 'Resume' : 'Pause'} ${name}`}
                              onClick={() => choose({ name, how: paused ? 'resume' : 'pause' })}
                            >
                              {paused ? 'Resume' : 'Pause'}
                            </button>
                          </td>
                        ) : null}
                      </tr>
                    ),
                  )}
                </tbody>
              </table>
            )
          }
        </Loaded>
      </CardBox>
      {chosen === null ? null : (
        <ActionDialog
          title={`${chosen.how === 'pause' ? 'Pause' : 'Resume'} the queue ${chosen.name}?`}
          confirm={chosen.how === 'pause' ? 'Pause the queue' : 'Resume the queue'}
          isDangerous={chosen.how === 'pause'}
          act={async () => {
            await act({ action: `queue.${chosen.how}`, name: chosen.name })
            again()
          }}
          close={() => choose(null)}
        >
          <p>
            {chosen.how === 'pause'
              ? 'No run of it begins until it is resumed. Runs that have begun continue, and new ones may be enqueued.'
              : 'Its runs begin again, within its limits.'}
          </p>
        </ActionDialog>
      )}
    </Page>
  )
}

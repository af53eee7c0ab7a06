import type { RunView, StepView } from 'onceonly/run'
import { durationText, timeText } from '../../parts/format.ts'
import { runTone } from '../states.ts'
import { type Bar, barsOf } from './run-bars.ts'

/** Steps, retries and waits along the time that the run took. */
export function RunTimeline({ run, now }: { readonly run: RunView; readonly now: number }) {
  const bars = barsOf(run, now)
  if (bars.length === 0) return null
  const begin = run.startedAt
  const end = Math.max(begin + 1, ...bars.flatMap(({ to, failedAt }) => [to, ...failedAt]), run.endedAt ?? 0)
  const place = (at: number) => `${((at - begin) / (end - begin)) * 100}%`
  return (
    <ol class="gantt" aria-label="Timeline">
      {bars.map(({ step, from, to, kind, failedAt }) => (
        <li key={`${step.key}/${step.tick}`}>
          <span class="name">
            {step.id}
            {step.tick > 0 ? <small class="faint">{` #${step.tick + 1}`}</small> : null}
          </span>
          <span class="track" title={`${timeText(from)} – ${timeText(to)}`}>
            <span
              class={kind === 'wait' ? 'span pause' : `span ${runTone(step.state)}`}
              style={{ left: place(from), width: `max(3px, ${((to - from) / (end - begin)) * 100}%)` }}
            />
            {failedAt.map((at) => (
              <span key={at} class="failed" style={{ left: place(at) }} title={`An attempt failed: ${timeText(at)}`} />
            ))}
          </span>
          <span class="took faint">{tookText(step, kind, to - from)}</span>
        </li>
      ))}
      <li class="axis faint" aria-hidden="true">
        <span class="name" />
        <span class="track">
          <span>0</span>
          <span>{durationText(end - begin)}</span>
        </span>
        <span class="took" />
      </li>
    </ol>
  )
}

function tookText({ state, failures }: StepView, kind: Bar['kind'], ms: number): string {
  const retries = failures.length === 0 ? '' : `, ${failures.length} failed`
  const word = kind === 'wait' ? 'waits' : state
  return `${word} ${durationText(ms)}${retries}`
}

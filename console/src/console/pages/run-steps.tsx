import type { RunView, StepView } from 'onceonly/run'
import { useState } from 'preact/hooks'
import { Badge } from '../../parts/badge.tsx'
import { agoText, storedText } from '../../parts/format.ts'
import { StoredText } from '../../parts/scroll.tsx'
import { Empty } from '../../parts/states.tsx'
import { CardBox, Facts } from '../page.tsx'
import { useMayAct } from '../session.tsx'
import { runTone } from '../states.ts'
import { ResolveDialog } from './resolve-dialog.tsx'
import { runLink } from './run-facts.tsx'

interface RunStepsProps {
  readonly run: RunView
  readonly now: number
  readonly again: () => void
}

/** The journal of a run: each step with its attempts, and what is in doubt. */
export function RunSteps({ run: { runId, steps, endedAt }, now, again }: RunStepsProps) {
  return (
    <CardBox title="Steps" isFlush>
      {steps.length === 0 ? <Empty title="No steps yet" /> : null}
      {steps.map((step, at) => (
        <StepRow
          key={`${step.key}/${step.tick}`}
          runId={runId}
          step={step}
          // The journal notes that a sleep began; whatever comes after it shows that it is over.
          isOver={step.kind === 'sleep' && (at < steps.length - 1 || endedAt !== null)}
          now={now}
          again={again}
        />
      ))}
    </CardBox>
  )
}

const resolutions = [
  { to: 'succeeded', text: 'It happened', about: 'The run continues with this result.', asks: 'result' },
  {
    to: 'failed',
    text: 'It failed',
    about: 'The step throws its error in the run.',
    asks: 'reason',
  },
  { to: 'rerun', text: 'It did not happen', about: 'The step is retried under the same key.', asks: null },
] as const

interface StepRowProps {
  readonly runId: string
  readonly step: StepView
  /** A wait that has ended. */
  readonly isOver: boolean
  readonly now: number
  readonly again: () => void
}

function StepRow({ runId, step, isOver, now, again }: StepRowProps) {
  const mayAct = useMayAct()
  const [resolving, setResolving] = useState(false)
  const { id, key, tick, kind, state, attempts, result, plan, child, failures, dueAt } = step
  return (
    <details class="folded step" open={state === 'unknown' || state === 'failed'}>
      <summary>
        <span class="tick">{tick}</span>
        <b>{id}</b>
        <span class="soft">{kind}</span>
        {isOver ? <Badge tone="plain">waited</Badge> : <Badge tone={runTone(state)}>{state}</Badge>}
        {attempts > 1 ? <span class="soft">{`${attempts} attempts`}</span> : null}
        {dueAt === null || isOver ? null : <span class="faint">{dueText(step, agoText(dueAt, now))}</span>}
      </summary>
      <Facts
        facts={[
          ['Key', <code>{key}</code>],
          ['Run', runLink(child)],
          ...failures.map(
            ({ attempt, name, message, at }) =>
              [`Attempt ${attempt}`, `${name}: ${message} (${agoText(at, now)})`] as const,
          ),
        ]}
      />
      {plan === null || plan === undefined ? null : <Stored title="Plan" value={plan} />}
      {result === null || result === undefined ? null : <Stored title="Result" value={result} />}
      {mayAct && state === 'unknown' ? (
        <button type="button" class="primary" onClick={() => setResolving(true)}>
          Resolve this step
        </button>
      ) : null}
      {resolving ? (
        <ResolveDialog
          title="What did the step do?"
          resolutions={resolutions}
          action={{ action: 'run.resolve', runId, key }}
          done={again}
          close={() => setResolving(false)}
        />
      ) : null}
    </details>
  )
}

/** What is due, and when. */
function dueText({ kind, state }: StepView, when: string): string {
  if (state === 'unknown') return `next probe ${when}`
  if (state === 'retrying') return `next attempt ${when}`
  return kind === 'sleep' || kind === 'signal' ? `continues ${when}` : when
}

function Stored({ title, value }: { readonly title: string; readonly value: unknown }) {
  return (
    <>
      <h3>{title}</h3>
      <StoredText>{storedText(value)}</StoredText>
    </>
  )
}

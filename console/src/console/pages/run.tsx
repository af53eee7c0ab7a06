import type { RunView, StepView } from 'onceonly/run'
import { useState } from 'preact/hooks'
import { useAsk } from '../../parts/ask.ts'
import { Badge } from '../../parts/badge.tsx'
import { ActionDialog } from '../../parts/dialog.tsx'
import { agoText, durationText, storedText, timeText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { ShortId } from '../../parts/short-id.tsx'
import { Empty } from '../../parts/states.tsx'
import { act, question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Facts, Loaded, Page } from '../page.tsx'
import { useMayAct } from '../session.tsx'
import { runTone } from '../states.ts'
import { ReplayView } from './replay.tsx'
import { ResolveDialog } from './resolve-dialog.tsx'
import { RunTimeline } from './run-timeline.tsx'

/** One run: its steps with their attempts, what is in doubt, and what today's code would do otherwise. */
export function RunPage({ runId }: { readonly runId: string }) {
  const [asked, again] = useAsk<RunView>(question(`/runs/${encodeURIComponent(runId)}`))
  return (
    <Loaded asked={asked} again={again}>
      {(run) => <Detail run={run} again={again} />}
    </Loaded>
  )
}

const ended = ['succeeded', 'failed', 'cancelled']

function Detail({ run, again }: { readonly run: RunView; readonly again: () => void }) {
  const mayAct = useMayAct()
  const now = useNow()
  const [open, setOpen] = useState<'cancel' | 'resume' | 'replay' | null>(null)
  const { runId, definition, version, state, failure, dueAt, startedAt, endedAt, input, result, steps } = run
  return (
    <Page
      title={
        <>
          <ShortId id={runId} /> <Badge tone={runTone(state)}>{state}</Badge>
        </>
      }
      about={
        <>
          <a href={addressOf(['runs'])}>Runs</a>
          {` / ${definition} v${version}`}
        </>
      }
      actions={
        mayAct ? (
          <>
            <button type="button" onClick={() => setOpen(open === 'replay' ? null : 'replay')}>
              Replay with today’s code
            </button>
            {state === 'failed' ? (
              <button type="button" onClick={() => setOpen('resume')}>
                Resume
              </button>
            ) : null}
            {ended.includes(state) ? null : (
              <button type="button" class="danger" onClick={() => setOpen('cancel')}>
                Cancel
              </button>
            )}
          </>
        ) : undefined
      }
    >
      {open === 'replay' ? <ReplayView runId={runId} /> : null}
      {failure === null ? null : <p class="notice bad">{`${failure.name}: ${failure.message}`}</p>}
      {steps.length === 0 ? null : (
        <CardBox title="Timeline">
          <RunTimeline run={run} now={now} />
        </CardBox>
      )}
      <div class="columns wide-left">
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
        <div class="stack">
          <CardBox title="The run">
            <Facts
              facts={[
                ['Run', <code>{runId}</code>],
                ['Definition', `${definition} v${version}`],
                ['Began', timeText(startedAt)],
                ['Ended', endedAt === null ? null : timeText(endedAt)],
                ['Took', endedAt === null ? null : durationText(endedAt - startedAt)],
                [state === 'unknown' ? 'Next probe' : 'Continues', dueAt === null ? null : agoText(dueAt, now)],
                ['Began again as', run.restarts],
              ]}
            />
          </CardBox>
          <CardBox title="Input">
            <pre class="stored">{input === null && !mayAct ? 'Visible to operators only.' : storedText(input)}</pre>
          </CardBox>
          {result === null || result === undefined ? null : (
            <CardBox title="Result">
              <pre class="stored">{storedText(result)}</pre>
            </CardBox>
          )}
        </div>
      </div>
      {open === 'resume' ? (
        <ActionDialog
          title="Resume this run?"
          confirm="Resume"
          act={async () => {
            await act({ action: 'run.resume', runId })
            again()
          }}
          close={() => setOpen(null)}
        >
          <p>It continues at its failed steps, with new attempts under the same keys. Fix the cause first.</p>
        </ActionDialog>
      ) : null}
      {open === 'cancel' ? (
        <ActionDialog
          title="Cancel this run?"
          confirm="Cancel the run"
          isDangerous
          act={async () => {
            await act({ action: 'run.cancel', runId })
            again()
          }}
          close={() => setOpen(null)}
        >
          <p>
            No further step is started. Completed steps are not undone; a step that is running cannot record its result.
          </p>
        </ActionDialog>
      ) : null}
    </Page>
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
  const { id, key, tick, kind, state, attempts, result, plan, failures, dueAt } = step
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
      <pre class="stored">{storedText(value)}</pre>
    </>
  )
}

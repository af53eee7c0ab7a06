import type { RunView } from 'onceonly/run'
import { useState } from 'preact/hooks'
import { useAsk } from '../../parts/ask.ts'
import { Badge } from '../../parts/badge.tsx'
import { storedText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { StoredText } from '../../parts/scroll.tsx'
import { ShortId } from '../../parts/short-id.tsx'
import { question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Loaded, Page } from '../page.tsx'
import { useMayAct } from '../session.tsx'
import { runTone } from '../states.ts'
import { ReplayView } from './replay.tsx'
import { RunActions } from './run-actions.tsx'
import { RunChildren } from './run-children.tsx'
import { RunEvents } from './run-events.tsx'
import { RunAttributes, RunFacts } from './run-facts.tsx'
import { RunSteps } from './run-steps.tsx'
import { RunTimeline } from './run-timeline.tsx'

/** One run: its steps with their attempts, what is in doubt, its children, and what today's code would do otherwise. */
export function RunPage({ runId }: { readonly runId: string }) {
  const [asked, again] = useAsk<RunView>(question(`/runs/${encodeURIComponent(runId)}`))
  return (
    <Loaded asked={asked} again={again}>
      {(run) => <Detail run={run} again={again} />}
    </Loaded>
  )
}

function Detail({ run, again }: { readonly run: RunView; readonly again: () => void }) {
  const mayAct = useMayAct()
  const now = useNow()
  const [isReplaying, setReplaying] = useState(false)
  const { runId, definition, version, state, failure, parent, endedAt, cancelledAt, attributes, input, result, steps } =
    run
  const isCancelling = cancelledAt !== null && endedAt === null
  return (
    <Page
      title={
        <>
          <ShortId id={runId} /> <Badge tone={runTone(state)}>{isCancelling ? 'cancelling' : state}</Badge>
        </>
      }
      about={
        <>
          <a href={addressOf(['runs'])}>Runs</a>
          {parent === null ? null : (
            <>
              {' / '}
              <a href={addressOf(['runs', parent])}>{parent}</a>
            </>
          )}
          {` / ${definition} v${version}`}
        </>
      }
      actions={
        mayAct ? (
          <RunActions run={run} isReplaying={isReplaying} replay={() => setReplaying(!isReplaying)} again={again} />
        ) : undefined
      }
    >
      {isReplaying ? <ReplayView runId={runId} /> : null}
      {failure === null ? null : <p class="notice bad">{`${failure.name}: ${failure.message}`}</p>}
      {steps.length === 0 ? null : (
        <CardBox title="Timeline">
          <RunTimeline run={run} now={now} />
        </CardBox>
      )}
      <div class="columns wide-left">
        <div class="stack">
          <RunSteps run={run} now={now} again={again} />
          {steps.some(({ child }) => child !== null) ? <RunChildren runId={runId} now={now} /> : null}
          {steps.some(({ kind }) => kind === 'event') ? <RunEvents runId={runId} now={now} /> : null}
        </div>
        <div class="stack">
          <CardBox title="The run">
            <RunFacts run={run} now={now} />
          </CardBox>
          {Object.keys(attributes).length === 0 ? null : (
            <CardBox title="Attributes">
              <RunAttributes attributes={attributes} />
            </CardBox>
          )}
          <CardBox title="Input">
            <StoredText>{input === null && !mayAct ? 'Visible to operators only.' : storedText(input)}</StoredText>
          </CardBox>
          {result === null || result === undefined ? null : (
            <CardBox title="Result">
              <StoredText>{storedText(result)}</StoredText>
            </CardBox>
          )}
        </div>
      </div>
    </Page>
  )
}

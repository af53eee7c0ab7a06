import type { RunView, StepView } from 'onceonly/run'
import { useState } from 'preact/hooks'
import { ActionDialog } from '../../parts/dialog.tsx'
import { addressOf, navigate } from '../../parts/router.ts'
import { act } from '../api.ts'
import { forkOf, isCleanUp } from '../run-words.ts'

interface ForkDialogProps {
  readonly run: RunView
  readonly close: () => void
}

/** A new run from a step of an old one; what it would copy is shown before it is started. */
export function ForkDialog({ run: { runId, steps }, close }: ForkDialogProps) {
  const [from, choose] = useState<StepView | null>(null)
  const [newId, name] = useState(`${runId}-fork`)
  const [input, say] = useState('')
  const given = input.trim()
  const fork = async () => {
    if (from === null) return
    const other = given === '' ? {} : { input: JSON.parse(given) as unknown }
    await act({ action: 'run.fork', runId, newId: newId.trim(), from: from.key, ...other })
    navigate(addressOf(['runs', newId.trim()]))
  }
  return (
    <ActionDialog
      title="Start a new run from a step of this one?"
      confirm="Start the new run"
      isReady={from !== null && newId.trim() !== ''}
      act={fork}
      close={close}
    >
      <p>
        What came before the step is copied and not done again. The step and all behind it are done by the new run,
        under keys of its own: a message that this run sent behind it is sent again.
      </p>
      <div class="field">
        <label for="fork-from">From the step</label>
        <select
          id="fork-from"
          value={from?.key ?? ''}
          onChange={({ currentTarget }) => choose(steps.find(({ key }) => key === currentTarget.value) ?? null)}
        >
          <option value="">choose one</option>
          {steps
            .filter((step) => !isCleanUp(step))
            .map((step) => (
              <option key={step.key} value={step.key}>
                {nameOf(step)}
              </option>
            ))}
        </select>
      </div>
      <div class="field">
        <label for="fork-id">Id of the new run</label>
        <input id="fork-id" value={newId} onInput={({ currentTarget }) => name(currentTarget.value)} />
      </div>
      <div class="field">
        <label for="fork-input">Another input, as JSON; empty for the same</label>
        <textarea id="fork-input" rows={2} value={input} onInput={({ currentTarget }) => say(currentTarget.value)} />
      </div>
      {from === null ? null : <Preview steps={steps} from={from} />}
    </ActionDialog>
  )
}

function Preview({ steps, from }: { readonly steps: readonly StepView[]; readonly from: StepView }) {
  const { copied, again } = forkOf(steps, from)
  return (
    <ul class="preview" tabIndex={0} aria-label="Preview">
      {[
        ...copied.map((step) => [step, 'copied'] as const),
        ...again.map((step) => [step, 'done by the new run'] as const),
      ].map(([step, what]) => (
        <li key={step.key}>
          <span>{nameOf(step)}</span>
          <span class="faint">{what}</span>
        </li>
      ))}
    </ul>
  )
}

function nameOf({ id, tick }: StepView): string {
  return tick === 0 ? id : `${id} #${tick + 1}`
}

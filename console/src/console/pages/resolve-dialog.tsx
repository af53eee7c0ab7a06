import { useState } from 'preact/hooks'
import { ActionDialog } from '../../parts/dialog.tsx'
import { type Action, act } from '../api.ts'

/** One possible outcome, and what it means. */
export interface Resolution {
  readonly to: string
  readonly text: string
  readonly about: string
  /** What the operator may add; null where there is nothing to add. */
  readonly asks: 'result' | 'reason' | null
}

interface ResolveDialogProps {
  readonly title: string
  /** None is preselected: Enter must not decide what only the provider knows. */
  readonly resolutions: readonly Resolution[]
  /** What is resolved; the chosen outcome is added. */
  readonly action: Action
  readonly done: () => void
  readonly close: () => void
}

const labels = { result: 'Its result, as JSON; may stay empty', reason: 'Why it failed' } as const

/** An operator resolves an unknown outcome. */
export function ResolveDialog({ title, resolutions, action, done, close }: ResolveDialogProps) {
  const [chosen, choose] = useState<Resolution | null>(null)
  const [said, say] = useState('')
  const asks = chosen?.asks ?? null
  const resolve = async () => {
    if (chosen === null) return
    await act({ ...action, to: chosen.to, ...detailOf(asks, said.trim()) })
    done()
  }
  return (
    <ActionDialog title={title} confirm="Resolve" isReady={chosen !== null} act={resolve} close={close}>
      <div class="choices" role="radiogroup" aria-label={title}>
        {resolutions.map((each) => (
          <label key={each.to}>
            <input type="radio" name="to" checked={each === chosen} onChange={() => choose(each)} />
            <span>
              <b>{each.text}</b>
              <small>{each.about}</small>
            </span>
          </label>
        ))}
      </div>
      {asks === null ? null : (
        <div class="field">
          <label for="resolved">{labels[asks]}</label>
          <textarea id="resolved" rows={3} value={said} onInput={({ currentTarget }) => say(currentTarget.value)} />
        </div>
      )}
    </ActionDialog>
  )
}

/** @throws SyntaxError when the result is no JSON; the dialog shows it */
function detailOf(asks: Resolution['asks'], said: string): Readonly<Record<string, unknown>> {
  if (said === '' || asks === null) return {}
  return asks === 'result' ? { value: JSON.parse(said) as unknown } : { error: said }
}

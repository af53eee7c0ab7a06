import { useState } from 'preact/hooks'
import { ActionDialog } from '../../parts/dialog.tsx'
import { act } from '../api.ts'

const resolutions = [
  { to: 'succeeded', text: 'It happened', about: 'The run goes on with this result.' },
  { to: 'failed', text: 'It failed for good', about: 'The step throws, and the run decides what that means.' },
  { to: 'not_done', text: 'It did not happen', about: 'It is tried again, under the same key.' },
] as const

type To = (typeof resolutions)[number]['to']

interface ResolveStepProps {
  readonly runId: string
  readonly stepKey: string
  readonly done: () => void
  readonly close: () => void
}

/** A person says what a step did of which nobody knows. */
export function ResolveStep({ runId, stepKey, done, close }: ResolveStepProps) {
  const [to, setTo] = useState<To>('succeeded')
  const [value, setValue] = useState('')
  const resolve = async () => {
    await act({ action: 'run.resolve', runId, key: stepKey, to, ...detailOf(to, value) })
    done()
  }
  return (
    <ActionDialog title="What did the step do?" confirm="Resolve" act={resolve} close={close}>
      <div class="choices" role="radiogroup" aria-label="What did the step do">
        {resolutions.map((each) => (
          <label key={each.to}>
            <input type="radio" name="to" checked={to === each.to} onChange={() => setTo(each.to)} />
            <span>
              <b>{each.text}</b>
              <small>{each.about}</small>
            </span>
          </label>
        ))}
      </div>
      {to === 'not_done' ? null : (
        <div class="field">
          <label for="step-value">{to === 'succeeded' ? 'Its result, as JSON; may stay empty' : 'Why it failed'}</label>
          <textarea
            id="step-value"
            rows={3}
            value={value}
            onInput={({ currentTarget }) => setValue(currentTarget.value)}
          />
        </div>
      )}
    </ActionDialog>
  )
}

/** @throws SyntaxError when the result is no JSON; the dialog shows it */
function detailOf(to: To, value: string): Readonly<Record<string, unknown>> {
  if (value.trim() === '' || to === 'not_done') return {}
  return to === 'succeeded' ? { value: JSON.parse(value) as unknown } : { error: value.trim() }
}

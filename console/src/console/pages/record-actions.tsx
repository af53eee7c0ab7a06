import { useState } from 'preact/hooks'
import { ActionDialog } from '../../parts/dialog.tsx'
import { act, type Card } from '../api.ts'
import { useMayAct } from '../session.tsx'

type Open = 'release' | 'forget' | 'resolve' | null

interface RecordActionsProps {
  readonly record: Card
  readonly done: () => void
}

/** What can be done about a record in its state. A viewer is shown nothing that would be refused. */
export function RecordActions({ record, done }: RecordActionsProps) {
  const mayAct = useMayAct()
  const [open, setOpen] = useState<Open>(null)
  if (!mayAct) return null
  const { id, fence, state } = record
  const close = () => setOpen(null)
  const run = async (action: 'release' | 'forget') => {
    await act({ action, id, ifFence: fence })
    done()
  }
  return (
    <>
      {state === 'unknown' ? (
        <button type="button" class="primary" onClick={() => setOpen('resolve')}>
          Resolve
        </button>
      ) : null}
      {state === 'in_progress' ? (
        <button type="button" onClick={() => setOpen('release')}>
          Release
        </button>
      ) : null}
      <button type="button" class="danger" onClick={() => setOpen('forget')}>
        Forget
      </button>
      {open === 'release' ? (
        <ActionDialog
          title="Release this claim?"
          confirm="Release"
          isDangerous
          act={() => run('release')}
          close={close}
        >
          <p>
            The attempt that holds it can write nothing any more, and the next retry runs the effect again. If the
            attempt is alive and talks to the outside, the effect may happen twice.
          </p>
        </ActionDialog>
      ) : null}
      {open === 'forget' ? (
        <ActionDialog title="Forget this record?" confirm="Forget" isDangerous act={() => run('forget')} close={close}>
          <p>The key is free again: the next request with it runs the effect as if it were the first.</p>
        </ActionDialog>
      ) : null}
      {open === 'resolve' ? <ResolveDialog id={id} fence={fence} done={done} close={close} /> : null}
    </>
  )
}

const resolutions = [
  { to: 'succeeded', text: 'It happened', about: 'Retries are answered with success, and nothing runs again.' },
  { to: 'failed', text: 'It failed for good', about: 'Retries are answered with a failure.' },
  { to: 'rerun', text: 'It did not happen', about: 'The next retry runs the effect, under the same effect key.' },
] as const

type To = (typeof resolutions)[number]['to']

interface ResolveDialogProps {
  readonly id: string
  /** Of the attempt that was looked at: a newer one is not resolved by mistake. */
  readonly fence: number
  readonly done: () => void
  readonly close: () => void
}

function ResolveDialog({ id, fence, done, close }: ResolveDialogProps) {
  const [to, setTo] = useState<To>('succeeded')
  const [value, setValue] = useState('')
  const resolve = async () => {
    await act({ action: 'resolve', id, to, ifFence: fence, ...detailOf(to, value) })
    done()
  }
  return (
    <ActionDialog title="What became of it?" confirm="Resolve" act={resolve} close={close}>
      <div class="choices" role="radiogroup" aria-label="What became of it">
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
      {to === 'rerun' ? null : (
        <div class="field">
          <label for="resolved-value">{to === 'succeeded' ? 'Result, as JSON; may stay empty' : 'Why it failed'}</label>
          <textarea
            id="resolved-value"
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
  if (value.trim() === '' || to === 'rerun') return {}
  return to === 'succeeded' ? { value: JSON.parse(value) as unknown } : { error: value.trim() }
}

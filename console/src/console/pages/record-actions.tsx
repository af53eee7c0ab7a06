import { useState } from 'preact/hooks'
import { ActionDialog } from '../../parts/dialog.tsx'
import { act, type Card } from '../api.ts'
import { useMayAct } from '../session.tsx'
import { ResolveDialog } from './resolve-dialog.tsx'

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
          <p>The key is free again: the next request with it runs the effect as a first attempt.</p>
        </ActionDialog>
      ) : null}
      {open === 'resolve' ? (
        <ResolveDialog
          title="What happened?"
          resolutions={resolutions}
          // By the fence of the attempt that was looked at: a newer one is not resolved by mistake.
          action={{ action: 'resolve', id, ifFence: fence }}
          done={done}
          close={close}
        />
      ) : null}
    </>
  )
}

const resolutions = [
  {
    to: 'succeeded',
    text: 'It happened',
    about: 'Retries get the result, and nothing runs again.',
    asks: 'result',
  },
  { to: 'failed', text: 'It failed', about: 'Retries get the error.', asks: 'reason' },
  {
    to: 'rerun',
    text: 'It did not happen',
    about: 'The next retry runs the effect, under the same effect key.',
    asks: null,
  },
] as const

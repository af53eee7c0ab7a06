import type { RunView } from 'onceonly/run'
import { useState } from 'preact/hooks'
import { ActionDialog } from '../../parts/dialog.tsx'
import { act } from '../api.ts'
import { isCleanUp, isResumable, runWords } from '../run-words.ts'
import { useMayAct } from '../session.tsx'
import { ForkDialog } from './fork-dialog.tsx'

interface RunActionsProps {
  readonly run: RunView
  readonly isReplaying: boolean
  readonly replay: () => void
  readonly again: () => void
}

/** What can be done about a run in its state. A viewer is shown nothing that would be refused. */
export function RunActions({ run, isReplaying, replay, again }: RunActionsProps) {
  const mayAct = useMayAct()
  const [open, setOpen] = useState<'cancel' | 'resume' | 'fork' | null>(null)
  if (!mayAct) return null
  const { runId, endedAt, cancelledAt, steps } = run
  const close = () => setOpen(null)
  return (
    <>
      <button type="button" aria-pressed={isReplaying} onClick={replay}>
        Replay with today’s code
      </button>
      {steps.some((step) => !isCleanUp(step)) ? (
        <button type="button" onClick={() => setOpen('fork')}>
          Fork …
        </button>
      ) : null}
      {isResumable(run) ? (
        <button type="button" onClick={() => setOpen('resume')}>
          Resume
        </button>
      ) : null}
      {endedAt === null && cancelledAt === null ? (
        <button type="button" class="danger" onClick={() => setOpen('cancel')}>
          Cancel
        </button>
      ) : null}
      {open === 'fork' ? <ForkDialog run={run} close={close} /> : null}
      {open === 'resume' || open === 'cancel' ? (
        <RunDialog how={open} what="run" runId={runId} done={again} close={close} />
      ) : null}
    </>
  )
}

interface RunDialogProps {
  readonly how: 'cancel' | 'resume'
  readonly what: 'run' | 'campaign'
  readonly runId: string
  readonly done: () => void
  readonly close: () => void
}

export function RunDialog({ how, what, runId, done, close }: RunDialogProps) {
  const verb = how === 'cancel' ? 'Cancel' : 'Resume'
  const run = async () => {
    await act({ action: `run.${how}`, runId })
    done()
  }
  return (
    <ActionDialog
      title={`${verb} this ${what}?`}
      confirm={`${verb} the ${what}`}
      isDangerous={how === 'cancel'}
      act={run}
      close={close}
    >
      <p>{runWords[how]}</p>
    </ActionDialog>
  )
}

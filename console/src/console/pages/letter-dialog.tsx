import { useEffect, useState } from 'preact/hooks'
import { ActionDialog } from '../../parts/dialog.tsx'
import { storedText } from '../../parts/format.ts'
import { type Action, act } from '../api.ts'

export type LetterAction = (what: 'redrive' | 'purge', handles: readonly string[], preview: boolean) => Action

interface LetterDialogProps {
  readonly what: 'redrive' | 'purge'
  readonly handles: readonly string[]
  readonly actionOf: LetterAction
  readonly done: () => void
  readonly close: () => void
}

/** Previews the action first: a key is redriven as a whole, so more dead letters than the chosen ones may follow. */
export function LetterDialog({ what, handles, actionOf, done, close }: LetterDialogProps) {
  const [preview, setPreview] = useState<readonly unknown[] | null>(null)
  const [failure, setFailure] = useState<string | null>(null)
  useEffect(() => {
    act<readonly unknown[]>(actionOf(what, handles, true)).then(setPreview, (error: unknown) =>
      setFailure(error instanceof Error ? error.message : String(error)),
    )
  }, [])
  const run = async () => {
    await act(actionOf(what, handles, false))
    done()
  }
  return (
    <ActionDialog
      title={what === 'redrive' ? 'Redrive these dead letters?' : 'Purge these dead letters?'}
      confirm={what === 'redrive' ? 'Redrive' : 'Purge'}
      isDangerous={what === 'purge'}
      act={run}
      close={close}
    >
      <p>
        {what === 'redrive'
          ? 'They are published again, oldest first; messages that were handled before are skipped.'
          : 'They are removed for good. Consumers that keep the order of a key see a gap.'}
      </p>
      {failure === null ? null : <p class="notice bad">{failure}</p>}
      <h3>
        {preview === null
          ? 'Loading preview …'
          : `Preview: ${preview.length} ${preview.length === 1 ? 'dead letter' : 'dead letters'}`}
      </h3>
      {preview === null ? null : (
        <ul class="preview" tabIndex={0} aria-label="Preview">
          {preview.map((each, at) => (
            <li key={at}>{previewText(each)}</li>
          ))}
        </ul>
      )}
    </ActionDialog>
  )
}

function previewText(each: unknown): string {
  if (typeof each !== 'object' || each === null) return storedText(each)
  const { result, topic, id, reason, message } = each as Readonly<Record<string, unknown>>
  const of = (message ?? {}) as Readonly<Record<string, unknown>>
  return [result, topic ?? of['topic'], id ?? of['id'], reason].filter((part) => typeof part === 'string').join(' · ')
}

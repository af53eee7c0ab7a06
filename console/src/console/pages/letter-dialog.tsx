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

/** Shows first what would become of the letters: a key goes as a whole, so that it may be more than were chosen. */
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
      title={what === 'redrive' ? 'Redrive these letters?' : 'Purge these letters?'}
      confirm={what === 'redrive' ? 'Redrive' : 'Purge'}
      isDangerous={what === 'purge'}
      act={run}
      close={close}
    >
      <p>
        {what === 'redrive'
          ? 'They are handled again, oldest first; whatever was handled before is recognised.'
          : 'They are removed for good. Whoever minds the order of a key sees a hole.'}
      </p>
      {failure === null ? null : <p class="notice bad">{failure}</p>}
      <h3>{preview === null ? 'Looking …' : `Preview: ${preview.length} letters`}</h3>
      {preview === null ? null : (
        <ul class="preview">
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

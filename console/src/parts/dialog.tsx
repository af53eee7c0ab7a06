import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Refused } from './ask.ts'

interface ActionDialogProps {
  readonly title: string
  /** What will happen, in words that one can decide by. */
  readonly children: ComponentChildren
  readonly confirm: string
  readonly isDangerous?: boolean
  /** False while something has to be chosen first. */
  readonly isReady?: boolean
  readonly act: () => Promise<void>
  readonly close: () => void
}

/** Asks before something is done, says what the server refused, and closes when it is done. */
export function ActionDialog(props: ActionDialogProps) {
  const { title, children, confirm, isDangerous = false, isReady = true, act, close } = props
  const dialog = useRef<HTMLDialogElement>(null)
  const [refusal, setRefusal] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  useEffect(() => dialog.current?.showModal(), [])
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    try {
      await act()
      close()
    } catch (error) {
      setRefusal(error instanceof Refused ? error.message : String(error))
      setBusy(false)
    }
  }
  return (
    <dialog ref={dialog} onClose={close} aria-label={title}>
      <form onSubmit={(event) => void submit(event)}>
        <h2>{title}</h2>
        {children}
        {refusal === null ? null : (
          <p class="notice bad" role="alert">
            {refusal}
          </p>
        )}
        <div class="actions">
          <button type="button" autofocus onClick={close}>
            Back
          </button>
          <button class={isDangerous ? 'danger' : 'primary'} disabled={busy || !isReady}>
            {confirm}
          </button>
        </div>
      </form>
    </dialog>
  )
}

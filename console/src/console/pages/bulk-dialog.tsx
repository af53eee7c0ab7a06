import { useEffect, useRef, useState } from 'preact/hooks'
import { Refused } from '../../parts/ask.ts'
import { ActionDialog } from '../../parts/dialog.tsx'
import { countText } from '../../parts/format.ts'
import { ShortId } from '../../parts/short-id.tsx'
import { Loading } from '../../parts/states.tsx'
import { type BulkHow, bulkWords, changeAll, type Found, type Left, lookFor } from './bulk.ts'

interface BulkDialogProps {
  readonly how: BulkHow
  /** The filters of the list; what is empty is left out. */
  readonly filter: Readonly<Record<string, string>>
  readonly done: () => void
  readonly close: () => void
}

type Preview =
  | { readonly kind: 'looking' }
  | ({ readonly kind: 'found' } & Found)
  | { readonly kind: 'refused'; readonly why: string }

/** As many as a person reads through; the others are counted. */
const NAMED = 100

/** Shows which runs would be changed, and then changes exactly those, whatever has begun to match meanwhile. */
export function BulkDialog({ how, filter, done, close }: BulkDialogProps) {
  const [preview, setPreview] = useState<Preview>({ kind: 'looking' })
  const [changed, setChanged] = useState<number | null>(null)
  const [left, setLeft] = useState<readonly Left[]>([])
  const leaving = useRef(new AbortController()).current
  const { title, confirm, about } = bulkWords[how]
  useEffect(() => {
    lookFor(how, filter, leaving.signal).then(
      (found) => setPreview({ kind: 'found', ...found }),
      (error: unknown) =>
        setPreview({ kind: 'refused', why: error instanceof Refused ? error.message : String(error) }),
    )
    return () => leaving.abort()
  }, [])
  const runs = preview.kind === 'found' ? preview.runs : []
  const change = async () => {
    setChanged(0)
    try {
      const unchanged = await changeAll(how, runs, leaving.signal, setChanged)
      setLeft(unchanged)
      if (unchanged.length > 0) {
        throw new Refused(409, `${countText(unchanged.length)} of ${countText(runs.length)} stay as they are.`)
      }
    } finally {
      done()
    }
  }
  const named = left.length > 0 ? left : runs
  return (
    <ActionDialog
      title={title}
      confirm={runs.length === 0 ? confirm : `${confirm} ${countText(runs.length)}`}
      isDangerous={how === 'cancel'}
      isReady={runs.length > 0 && changed === null}
      act={change}
      close={close}
    >
      <p>{about}</p>
      {preview.kind === 'looking' ? <Loading rows={2} /> : null}
      {preview.kind === 'refused' ? <p class="notice">{preview.why}</p> : null}
      {preview.kind === 'found' ? (
        <>
          <p class="soft">{previewText(preview)}</p>
          {changed === null ? null : <Advance of={runs.length} done={changed} />}
          <ul
            class="preview"
            tabIndex={0}
            aria-label={left.length > 0 ? 'Runs that stay as they are' : 'Runs that would change'}
          >
            {named.slice(0, NAMED).map((run) => (
              <li key={run.runId}>
                <ShortId id={run.runId} />
                <span class="faint">{'note' in run ? run.note : `${run.definition}, ${run.state}`}</span>
              </li>
            ))}
            {named.length > NAMED ? <li class="faint">{`and ${countText(named.length - NAMED)} more`}</li> : null}
          </ul>
        </>
      ) : null}
    </ActionDialog>
  )
}

function Advance({ of, done }: { readonly of: number; readonly done: number }) {
  const words = `${countText(done)} of ${countText(of)} runs`
  return (
    <span class="advance">
      <progress max={of} value={done} aria-label={words} />
      <span role="status">{words}</span>
    </span>
  )
}

function previewText({ runs, more }: Found): string {
  const count = runs.length === 1 ? '1 run' : `${countText(runs.length)} runs`
  return `Preview: ${count}${more ? ', the newest; repeat it for the others' : ''}`
}

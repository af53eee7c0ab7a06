import { useEffect, useState } from 'preact/hooks'
import { Refused } from '../../parts/ask.ts'
import { ActionDialog } from '../../parts/dialog.tsx'
import { countText } from '../../parts/format.ts'
import { ShortId } from '../../parts/short-id.tsx'
import { Loading } from '../../parts/states.tsx'
import { type AnswerOf, act } from '../api.ts'

export type BulkHow = 'cancel' | 'resume' | 'retry'

type BulkAnswer = AnswerOf<'runs.cancel'>
type BulkRun = BulkAnswer['rows'][number]

interface BulkDialogProps {
  readonly how: BulkHow
  /** The filters of the list; what is empty is left out. */
  readonly filter: Readonly<Record<string, string>>
  readonly done: () => void
  readonly close: () => void
}

type Preview =
  | { readonly kind: 'looking' }
  | { readonly kind: 'found'; readonly runs: readonly BulkRun[]; readonly more: boolean }
  | { readonly kind: 'refused'; readonly why: string }

/** As many as one command changes. */
const runsMost = 500

const words = {
  cancel: {
    title: 'Cancel the runs that match?',
    confirm: 'Cancel',
    about: 'No further step is started. Completed steps are not undone.',
    states: ['queued', 'running', 'sleeping', 'unknown'],
  },
  resume: {
    title: 'Resume the runs that match?',
    confirm: 'Resume',
    about: 'Each continues at its failed steps, with new attempts under the same keys. Fix the cause first.',
    states: ['failed', 'unknown'],
  },
  retry: {
    title: 'Retry the runs that match now?',
    confirm: 'Retry',
    about: 'Steps that wait for their next attempt are tried at once, under the same keys.',
    states: ['sleeping'],
  },
} as const

/** Shows which runs would be changed, and then changes exactly those, whatever has begun to match meanwhile. */
export function BulkDialog({ how, filter, done, close }: BulkDialogProps) {
  const [preview, setPreview] = useState<Preview>({ kind: 'looking' })
  const [left, setLeft] = useState<readonly BulkRun[]>([])
  const { title, confirm, about, states } = words[how]
  useEffect(() => {
    look(how, filter, states).then(setPreview, (error: unknown) =>
      setPreview({ kind: 'refused', why: error instanceof Refused ? error.message : String(error) }),
    )
  }, [])
  const runs = preview.kind === 'found' ? preview.runs : []
  const change = async () => {
    const runIds = runs.map(({ runId }) => runId)
    const { rows } = await act<BulkAnswer>({ action: `runs.${how}`, runIds })
    done()
    const unchanged = rows.filter(({ result }) => result !== 'changed')
    setLeft(unchanged)
    if (unchanged.length > 0) throw new Refused(409, `${unchanged.length} of ${rows.length} stay as they are.`)
  }
  return (
    <ActionDialog
      title={title}
      confirm={runs.length === 0 ? confirm : `${confirm} ${countText(runs.length)}`}
      isDangerous={how === 'cancel'}
      isReady={runs.length > 0 && left.length === 0}
      act={change}
      close={close}
    >
      <p>{about}</p>
      {preview.kind === 'looking' ? <Loading rows={2} /> : null}
      {preview.kind === 'refused' ? <p class="notice">{preview.why}</p> : null}
      {preview.kind === 'found' ? (
        <>
          <p class="soft">{previewText(preview)}</p>
          <ul class="preview" tabIndex={0} aria-label="Runs that would change">
            {(left.length > 0 ? left : runs).map(({ runId, definition, state, note }) => (
              <li key={runId}>
                <ShortId id={runId} />
                <span class="faint">{note ?? `${definition}, ${state}`}</span>
              </li>
            ))}
          </ul>
        </>
      ) : null}
    </ActionDialog>
  )
}

function previewText({ runs, more }: Extract<Preview, { kind: 'found' }>): string {
  const count = runs.length === 1 ? '1 run' : `${countText(runs.length)} runs`
  return `Preview: ${count}${more ? ', the newest; repeat it for the others' : ''}`
}

/** A list without a filter stands for all runs in the states that can be changed this way. */
async function look(
  how: BulkHow,
  { state = '', stuck: _stuck, ...rest }: Readonly<Record<string, string>>,
  states: readonly string[],
): Promise<Preview> {
  const chosen = state === '' ? states : states.filter((each) => each === state)
  if (chosen.length === 0) return { kind: 'refused', why: `Runs that are ${state} cannot be changed this way.` }
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== ''))
  const pages = await Promise.all(
    chosen.map((each) =>
      act<BulkAnswer>({ action: `runs.${how}`, ...given, state: each, limit: runsMost, preview: true }).catch(nothing),
    ),
  )
  const found = pages.flatMap(({ rows }) => rows).filter(({ result }) => result === 'would_change')
  const runs = found.slice(0, runsMost)
  if (runs.length === 0) return { kind: 'refused', why: `No run that matches is ${states.join(' or ')}.` }
  return { kind: 'found', runs, more: pages.some(({ more }) => more) || found.length > runsMost }
}

/** No match is no failure, as long as another state has some. */
function nothing(error: unknown): BulkAnswer {
  if (error instanceof Refused && error.status === 404) return { rows: [], more: false }
  throw error
}

import { useState } from 'preact/hooks'
import { Refused } from '../../parts/ask.ts'
import { ActionDialog } from '../../parts/dialog.tsx'
import { countText } from '../../parts/format.ts'
import { type AnswerOf, act } from '../api.ts'
import { CardBox, Facts } from '../page.tsx'

type What = 'workspace' | 'person'
type Erased = AnswerOf<'erase'>

/** The owner of the data, as it was previewed: what is confirmed is what was seen. */
interface Chosen {
  readonly what: What
  readonly id: string
  readonly tenant?: string
}

const kinds: readonly { readonly what: What; readonly text: string; readonly about: string }[] = [
  { what: 'workspace', text: 'A workspace', about: 'Everything of it: its keys, messages, runs, imports and rooms.' },
  { what: 'person', text: 'A person', about: 'A caller, or what mentions a phone number or an e-mail address.' },
]

/** Shows how much would be erased; the id is typed once more before anything is. */
export function EraseForm() {
  const [what, choose] = useState<What | null>(null)
  const [id, name] = useState('')
  const [tenant, within] = useState('')
  const [preview, setPreview] = useState<{ readonly of: Chosen; readonly found: Erased } | null>(null)
  const [erased, setErased] = useState<Erased | null>(null)
  const [refusal, setRefusal] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const look = async (event: Event) => {
    event.preventDefault()
    // A button that is disabled loses the focus, which comes back to it after the dialog.
    if (what === null || busy) return
    const of = { what, id: id.trim(), ...(what === 'person' && tenant.trim() !== '' ? { tenant: tenant.trim() } : {}) }
    setBusy(true)
    setErased(null)
    setRefusal(null)
    try {
      setPreview({ of, found: await act<Erased>({ action: 'erase', ...of, preview: true }) })
    } catch (error) {
      setRefusal(error instanceof Refused ? error.message : String(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <CardBox title="Erase">
      <form class="stack" onSubmit={(event) => void look(event)}>
        <div class="choices" role="radiogroup" aria-label="Owner of the data">
          {kinds.map((kind) => (
            <label key={kind.what}>
              <input type="radio" name="what" checked={kind.what === what} onChange={() => choose(kind.what)} />
              <span>
                <b>{kind.text}</b>
                <small>{kind.about}</small>
              </span>
            </label>
          ))}
        </div>
        <Field id="erase-id" label="Its id" value={id} change={name} />
        {what === 'person' ? (
          <Field id="erase-tenant" label="Only in this workspace; empty for all" value={tenant} change={within} />
        ) : null}
        <button disabled={what === null || id.trim() === ''}>{busy ? 'Counting …' : 'Show what there is …'}</button>
        {refusal === null ? null : (
          <p class="notice bad" role="alert">
            {refusal}
          </p>
        )}
        {erased === null ? null : (
          <div role="status">
            <p class="notice">{endText(erased)}</p>
            <Counts of={erased} />
          </div>
        )}
      </form>
      {preview === null ? null : (
        <EraseDialog
          of={preview.of}
          found={preview.found}
          done={(answer) => {
            setErased(answer)
            name('')
          }}
          close={() => setPreview(null)}
        />
      )}
    </CardBox>
  )
}

function endText({ running, left }: Erased): string {
  const still = running === 0 ? '' : ` ${countText(running)} attempts still run: erase again when they have ended.`
  const names = left.some.map(({ what, id, why }) => `${what} ${id} (${why})`).join(', ')
  const rest = left.count === 0 ? '' : ` Left until their outcome is known: ${countText(left.count)}, such as ${names}.`
  return `Erased. Keys stay taken until their window ends.${still}${rest}`
}

interface EraseDialogProps {
  readonly of: Chosen
  readonly found: Erased
  readonly done: (erased: Erased) => void
  readonly close: () => void
}

function EraseDialog({ of, found, done, close }: EraseDialogProps) {
  const [typed, type] = useState('')
  return (
    <ActionDialog
      title={`Erase the ${of.what} ${of.id} for good?`}
      confirm="Erase for good"
      isDangerous
      isReady={typed === of.id}
      act={async () => done(await act<Erased>({ action: 'erase', ...of }))}
      close={close}
    >
      <p>
        Nothing brings it back. Keys stay taken until their window ends, so that no command runs again; what is under
        way stays until it has ended.
      </p>
      <Counts of={found} />
      <Field id="erase-again" label={`Type ${of.id} to confirm`} value={typed} change={type} />
    </ActionDialog>
  )
}

function Counts({ of: { records, running, own, left } }: { readonly of: Erased }) {
  const counts = [
    ['records', records],
    ...Object.entries(own),
    ['attempts that still run', running],
    ['left: under way or unknown', left.count],
  ] as const
  return <Facts facts={counts.map(([name, count]) => [name, count === 0 ? null : countText(count)])} />
}

interface FieldProps {
  readonly id: string
  readonly label: string
  readonly value: string
  readonly change: (value: string) => void
}

function Field({ id, label, value, change }: FieldProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        value={value}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => change(currentTarget.value)}
      />
    </div>
  )
}

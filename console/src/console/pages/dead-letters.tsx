import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useAsk } from '../../parts/ask.ts'
import { storedText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { Empty } from '../../parts/states.tsx'
import { Time } from '../../parts/timeline.tsx'
import { type EventMessage, question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Loaded } from '../page.tsx'
import { useMayAct } from '../session.tsx'
import { type LetterAction, LetterDialog } from './letter-dialog.tsx'

/** A letter as the page shows it, whichever side gave it up. */
interface Letter {
  /** What the server wants to be told to mean this letter. */
  readonly handle: string
  readonly message: EventMessage
  readonly reason: string
  readonly attempts: number
  readonly parkedAt: number
}

interface OutboxLetter {
  readonly message: EventMessage
  readonly reason: string
  readonly attempts: number
  readonly parkedAt: number
}

interface InboxLetter {
  readonly letter: string
  readonly message: EventMessage
  readonly reason: string
  readonly failure: { readonly name: string; readonly message: string } | null
  readonly failures: number
  readonly parkedAt: number
}

interface Page<Row> {
  readonly rows: readonly Row[]
  readonly cursor: string | null
}

interface DoneProps {
  readonly done: () => void
}

export function OutboxLetters({ done }: DoneProps) {
  const [asked, again] = useAsk<Page<OutboxLetter>>(question('/events/outbox/dead'))
  const letters = (page: Page<OutboxLetter>) => page.rows.map((row): Letter => ({ ...row, handle: row.message.id }))
  return (
    <CardBox title="Dead letters of the outbox" isFlush>
      <Loaded asked={asked} again={again}>
        {(page) => (
          <Letters
            letters={letters(page)}
            hasMore={page.cursor !== null}
            actionOf={(what, ids, preview) => ({ action: `outbox.${what}`, ids, preview })}
            done={() => {
              again()
              done()
            }}
          />
        )}
      </Loaded>
    </CardBox>
  )
}

export function InboxLetters({ consumer, done }: DoneProps & { readonly consumer: string }) {
  const [asked, again] = useAsk<Page<InboxLetter>>(question(`/events/inbox/${encodeURIComponent(consumer)}/dead`))
  const letters = (page: Page<InboxLetter>) =>
    page.rows.map(({ letter, message, reason, failure, failures, parkedAt }): Letter => {
      const told = failure === null ? reason : `${reason}: ${failure.name}: ${failure.message}`
      return { handle: letter, message, reason: told, attempts: failures, parkedAt }
    })
  return (
    <CardBox
      title={`Dead letters of ${consumer}`}
      isFlush
      end={<a href={addressOf(['events'])}>Those of the outbox</a>}
    >
      <Loaded asked={asked} again={again}>
        {(page) => (
          <Letters
            letters={letters(page)}
            hasMore={page.cursor !== null}
            actionOf={(what, ids, preview) => ({ action: `inbox.${what}`, consumer, letters: ids, preview })}
            done={() => {
              again()
              done()
            }}
          />
        )}
      </Loaded>
    </CardBox>
  )
}

interface LettersProps {
  readonly letters: readonly Letter[]
  readonly hasMore: boolean
  readonly actionOf: LetterAction
  readonly done: () => void
}

/** A page of them; an operator chooses some, sees what would become of them, and decides. */
function Letters({ letters, hasMore, actionOf, done }: LettersProps) {
  const mayAct = useMayAct()
  const now = useNow()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const [open, setOpen] = useState<'redrive' | 'purge' | null>(null)
  if (letters.length === 0) return <Empty title="No dead letters" />
  const toggle = (handle: string) => setChosen((before) => new Set(before).symmetricDifference(new Set([handle])))
  const all = letters.map(({ handle }) => handle)
  return (
    <>
      {mayAct ? (
        <div class="toolbar">
          <button type="button" onClick={() => setChosen(chosen.size === all.length ? new Set() : new Set(all))}>
            {chosen.size === all.length ? 'Choose none' : 'Choose all'}
          </button>
          <button type="button" class="primary" disabled={chosen.size === 0} onClick={() => setOpen('redrive')}>
            {`Redrive ${chosen.size === 0 ? '' : chosen.size} …`}
          </button>
          <button type="button" class="danger" disabled={chosen.size === 0} onClick={() => setOpen('purge')}>
            Purge …
          </button>
          {hasMore ? <span class="faint">The oldest are shown; more follow when these are gone.</span> : null}
        </div>
      ) : null}
      {letters.map(({ handle, message, reason, attempts, parkedAt }) => (
        <Row key={handle} choose={mayAct ? { isChosen: chosen.has(handle), toggle: () => toggle(handle) } : null}>
          <summary>
            <code>{message.topic}</code>
            <span class="soft">{message.key === null ? '' : `key ${message.key}`}</span>
            <span class="reason">{reason}</span>
            <Time atMs={parkedAt} nowMs={now} />
          </summary>
          <p class="soft">{`Message ${message.id}, tried ${attempts} times`}</p>
          <pre class="stored">{message.body === null ? 'Operators see the body.' : storedText(message.body)}</pre>
        </Row>
      ))}
      {open === null ? null : (
        <LetterDialog
          what={open}
          handles={[...chosen]}
          actionOf={actionOf}
          done={() => {
            setChosen(new Set())
            done()
          }}
          close={() => setOpen(null)}
        />
      )}
    </>
  )
}

interface RowProps {
  readonly choose: { readonly isChosen: boolean; readonly toggle: () => void } | null
  readonly children: ComponentChildren
}

function Row({ choose, children }: RowProps) {
  return (
    <div class="letter">
      {choose === null ? null : (
        <input type="checkbox" checked={choose.isChosen} onChange={choose.toggle} aria-label="Choose this letter" />
      )}
      <details class="folded">{children}</details>
    </div>
  )
}

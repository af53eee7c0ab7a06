import type { DeadLetters } from 'onceonly/admin'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { storedText } from '../../parts/format.ts'
import { type List, useList } from '../../parts/list.tsx'
import { addressOf } from '../../parts/router.ts'
import { StoredText } from '../../parts/scroll.tsx'
import { Empty, Failed, Loading } from '../../parts/states.tsx'
import { Time } from '../../parts/timeline.tsx'
import { question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox } from '../page.tsx'
import { useMayAct } from '../session.tsx'
import { type LetterAction, LetterDialog } from './letter-dialog.tsx'

/** The server acts on so many at a time. */
const chosenMost = 1_000

/** A letter as the page shows it, whichever side gave it up. */
interface Letter {
  /** How the server identifies this dead letter. */
  readonly handle: string
  /** Its body is null for a viewer. */
  readonly message: Omit<Dead<'outboxDead'>['message'], 'body'> & { readonly body: unknown }
  readonly reason: string
  readonly attempts: number
  readonly parkedAt: number
}

type Dead<Name extends 'outboxDead' | 'inboxDead'> = Awaited<ReturnType<DeadLetters[Name]>>['rows'][number]

interface DoneProps {
  readonly done: () => void
}

export function OutboxLetters({ done }: DoneProps) {
  const list = useList<Dead<'outboxDead'>>(question('/events/outbox/dead'))
  return (
    <CardBox title="Dead letters of the outbox" isFlush>
      <LetterList
        list={list}
        letterOf={(row) => ({ ...row, handle: row.message.id })}
        actionOf={(what, ids, preview) => ({ action: `outbox.${what}`, ids, preview })}
        done={done}
      />
    </CardBox>
  )
}

export function InboxLetters({ consumer, done }: DoneProps & { readonly consumer: string }) {
  const list = useList<Dead<'inboxDead'>>(question(`/events/inbox/${encodeURIComponent(consumer)}/dead`))
  return (
    <CardBox
      title={`Dead letters of ${consumer}`}
      isFlush
      end={<a href={addressOf(['events'])}>Dead letters of the outbox</a>}
    >
      <LetterList
        list={list}
        letterOf={({ letter, message, reason, failure, failures, parkedAt }) => {
          const shownReason = failure === null ? reason : `${reason}: ${failure.name}: ${failure.message}`
          return { handle: letter, message, reason: shownReason, attempts: failures, parkedAt }
        }}
        actionOf={(what, ids, preview) => ({ action: `inbox.${what}`, consumer, deadLetters: ids, preview })}
        done={done}
      />
    </CardBox>
  )
}

interface LetterListProps<Row> {
  readonly list: List<Row>
  readonly letterOf: (row: Row) => Letter
  readonly actionOf: LetterAction
  readonly done: () => void
}

function LetterList<Row>({ list, letterOf, actionOf, done }: LetterListProps<Row>) {
  const { rows, cursor, isLoading, failure, more, again } = list
  if (failure !== null) return <Failed message={failure} retry={rows.length === 0 ? again : more} />
  if (rows.length === 0 && isLoading) return <Loading />
  return (
    <>
      <LetterRows
        letters={rows.map(letterOf)}
        actionOf={actionOf}
        done={() => {
          again()
          done()
        }}
      />
      {cursor === null ? null : (
        <div class="toolbar">
          <button type="button" disabled={isLoading} onClick={more}>
            More dead letters
          </button>
          <span class="faint">{`${rows.length} are shown, the oldest first.`}</span>
        </div>
      )}
    </>
  )
}

interface LetterRowsProps {
  readonly letters: readonly Letter[]
  readonly actionOf: LetterAction
  readonly done: () => void
}

/** As many as are loaded; an operator chooses some, sees what would become of them, and decides. */
function LetterRows({ letters, actionOf, done }: LetterRowsProps) {
  const mayAct = useMayAct()
  const now = useNow()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const [open, setOpen] = useState<'redrive' | 'purge' | null>(null)
  if (letters.length === 0) return <Empty title="No dead letters" />
  const toggle = (handle: string) => setChosen((before) => new Set(before).symmetricDifference(new Set([handle])))
  const all = letters.slice(0, chosenMost).map(({ handle }) => handle)
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
          <StoredText>
            {message.body === null ? 'The body is visible to operators only.' : storedText(message.body)}
          </StoredText>
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
        <input
          type="checkbox"
          checked={choose.isChosen}
          onChange={choose.toggle}
          aria-label="Choose this dead letter"
        />
      )}
      <details class="folded">{children}</details>
    </div>
  )
}

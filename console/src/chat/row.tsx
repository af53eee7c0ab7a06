import { Component } from 'preact'
import type { MessageState } from './message.ts'
import { looksSame, type RowProps } from './row-props.ts'
import { colourOf, type Quote } from './said.ts'

/** One message. Drawn again only when something of it changes: most of a thousand stay as they are. */
export class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    return !looksSame(this.props, next)
  }

  override render({ message, isOwn, quote, isParentGone, together, reply, settle }: RowProps) {
    const { name, text, state, final, entry } = message
    return (
      <article class={isOwn ? 'message own' : 'message'} data-state={state}>
        <Face name={name} />
        <div class="said">
          <p class="meta">
            <b>{name}</b>
            {entry === null ? null : <span class="faint">{regionOf(entry.log)}</span>}
            <Mark state={state} final={final} />
            {together === '' ? null : (
              <span class="together" title={`Written at the same time as: ${together}`}>
                at the same time
              </span>
            )}
          </p>
          <QuoteLine quote={quote} isGone={isParentGone} />
          <p class="text">{text}</p>
        </div>
        {state === 'doubtful' || state === 'refused' ? (
          <span class="settle">
            <button type="button" class="quiet" onClick={() => settle(message, 'again')}>
              Send again
            </button>
            <button type="button" class="quiet" onClick={() => settle(message, 'discard')}>
              Discard
            </button>
          </span>
        ) : (
          <button type="button" class="quiet reply" onClick={() => reply(message)} aria-label={`Reply to “${text}”`}>
            Reply
          </button>
        )}
      </article>
    )
  }
}

/** What a reply replies to; in the words of its author where the message itself is no longer here. */
function QuoteLine({ quote, isGone }: { readonly quote: Quote | null; readonly isGone: boolean }) {
  if (quote === null && !isGone) return null
  return (
    <p class="quote" title={isGone ? 'The message that this replies to is no longer kept' : undefined}>
      {quote === null ? (
        'A message that is no longer kept'
      ) : (
        <>
          <b>{quote.name}</b> {quote.text}
        </>
      )}
      {isGone && quote !== null ? <span class="faint"> · no longer kept</span> : null}
    </p>
  )
}

export function Face({ name }: { readonly name: string }) {
  return (
    <span class="face" data-series={colourOf(name)} aria-hidden="true">
      {Array.from(name)[0]}
    </span>
  )
}

const titles: Readonly<Record<MessageState, string>> = {
  pending: 'Only here, until a region takes it',
  accepted: 'On disk in its region; its place may still change',
  final: 'Its place is the same for all',
  doubtful: 'No region remembers whether it arrived. Look for it before you send it again.',
  refused: 'Not sent: the room does not have the message that it replies to.',
}

const labels: Readonly<Record<Exclude<MessageState, 'final'>, string>> = {
  pending: 'pending',
  accepted: 'accepted',
  doubtful: 'outcome unknown',
  refused: 'not sent',
}

function Mark({ state, final }: { readonly state: MessageState; readonly final: number | null }) {
  return (
    <span class={`mark ${state}`} title={titles[state]}>
      {state === 'final' ? `#${final}` : labels[state]}
    </span>
  )
}

/** A log is named by its region, a dot and its epoch. */
function regionOf(log: string): string {
  return log.replace(/\.[^.]*$/, '')
}

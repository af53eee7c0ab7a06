import type { GuardDecision } from 'onceonly/admin'
import { useAsk } from '../../parts/ask.ts'
import type { Tone } from '../../parts/badge.tsx'
import { countText, durationText, storedText, timeText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { StoredText } from '../../parts/scroll.tsx'
import { Time, Timeline } from '../../parts/timeline.tsx'
import { type AnswerOf, type Card, question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Facts, Loaded, Page } from '../page.tsx'
import { recordStates } from '../states.ts'
import { RecordActions } from './record-actions.tsx'
import { StateBadge } from './records.tsx'

/** Everything about one identity: what it is, what happened to it, what retries are answered with, what one can do. */
export function RecordPage({ id }: { readonly id: string }) {
  const [asked, again] = useAsk<AnswerOf<'inspect'>>(question(`/records/${encodeURIComponent(id)}`))
  return (
    <Loaded asked={asked} again={again}>
      {(detail) => <Detail detail={detail} again={again} />}
    </Loaded>
  )
}

function Detail({ detail, again }: { readonly detail: AnswerOf<'inspect'>; readonly again: () => void }) {
  const { record, answers, timeline, guard, stored, storedHidden } = detail
  const now = useNow()
  return (
    <Page
      title={
        <>
          <code>{record.identity.key}</code> <StateBadge state={record.state} expired={record.expired} />
        </>
      }
      about={
        <>
          <a href={addressOf(['records'])}>Records</a>
          {` / ${record.identity.operation} / ${record.identity.tenant} / ${record.identity.caller}`}
        </>
      }
      actions={<RecordActions record={record} done={again} />}
    >
      <div class="columns">
        <CardBox title="What happened">
          <Timeline
            nowMs={now}
            moments={timeline.map(({ at, what, note }) => ({
              atMs: at,
              tone: toneOf(what),
              title: recordStates[what as Card['state']]?.word ?? what,
              ...(note === null ? {} : { about: note }),
            }))}
          />
        </CardBox>
        <CardBox title="The record">
          <RecordFacts record={record} now={now} />
        </CardBox>
      </div>
      {guard === null ? null : (
        <CardBox title="What the guard decided">
          <GuardFacts guard={guard} now={now} />
        </CardBox>
      )}
      <CardBox title="Ten questions" isFlush>
        <table class="plain answers">
          <tbody>
            {answers.map(({ topic, question, answer, alarming }) => (
              <tr key={topic} class={alarming ? 'alarming' : ''}>
                <th scope="row">{question}</th>
                <td>{answer}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </CardBox>
      <CardBox title="Response to retries">
        {storedHidden ? (
          <p class="soft">Visible to operators only.</p>
        ) : stored === null ? (
          <p class="soft">No response is stored.</p>
        ) : (
          <StoredText>{storedText(stored)}</StoredText>
        )}
      </CardBox>
    </Page>
  )
}

function RecordFacts({ record, now }: { readonly record: Card; readonly now: number }) {
  const { identity, pointer, failure } = record
  const time = (atMs: number | null) => (atMs === null ? null : <Time atMs={atMs} nowMs={now} />)
  return (
    <Facts
      facts={[
        ['Operation', identity.operation],
        ['Tenant', identity.tenant],
        ['Caller', identity.caller],
        ['Key', <code>{identity.key}</code>],
        ['Record', <code>{record.id}</code>],
        ['Made', pointer === null ? null : `${pointer.type} ${pointer.id}`],
        ['Attempts', countText(record.attempts)],
        ['Calls of other systems', callsText(record)],
        ['Replays', countText(record.replays)],
        ['Refused while it ran', countText(record.inProgress)],
        ['Refused for another payload', countText(record.conflicts)],
        ['Last repeat', time(record.repeatedAt)],
        ['Claimed', timeText(record.claimedAt)],
        ['Lease', record.leaseUntil === null ? null : leaseText(record.leaseUntil, now)],
        ['Settled', record.settledAt === null ? null : timeText(record.settledAt)],
        ['Retry from', time(record.retryAt)],
        ['Unknown since', time(record.unknownSince)],
        ['Expires', record.expiresAt === null ? 'never' : time(record.expiresAt)],
        ['Failure', failure === null ? null : `${failure.code ?? failure.name}: ${failure.message}`],
        ['Fence', String(record.fence)],
        ['Fingerprint', <code>{record.fingerprint}</code>],
        ['Effect key', record.effectKey === null ? null : <code>{record.effectKey}</code>],
      ]}
    />
  )
}

/** What an attempt does not note is no fact: it may have made one call, or none. */
function callsText({ calls, attempts, facts }: Card): string {
  const isNoted = facts?.provider !== undefined || facts?.extraCalls !== undefined
  return isNoted ? countText(calls) : `not noted, at most ${countText(attempts)}`
}

function GuardFacts({ guard, now }: { readonly guard: GuardDecision; readonly now: number }) {
  const { operation, hash, guarded, windowMs, windowEndsAt, original, blocked, lastBlockedAt } = guard
  return (
    <Facts
      facts={[
        ['Decision', guarded ? 'sent under its lock' : 'sent without its lock'],
        ['Lock', <code>{`${operation} ${hash}`}</code>],
        ['Window', durationText(windowMs)],
        ['Window ends', <Time atMs={windowEndsAt} nowMs={now} />],
        ['Original', original],
        ['Duplicates blocked', countText(blocked)],
        ['Last blocked', lastBlockedAt === null ? null : <Time atMs={lastBlockedAt} nowMs={now} />],
      ]}
    />
  )
}

function leaseText(until: number, now: number): string {
  return until >= now ? `for ${durationText(until - now)}` : `over since ${durationText(now - until)}`
}

function toneOf(what: string): Tone {
  if (/succeed|settled|answered/i.test(what)) return 'good'
  if (/unknown|probe/i.test(what)) return 'doubt'
  if (/fail|abandon|lost/i.test(what)) return 'bad'
  if (/laps|releas|forgot|resolv|supersed|reclaim/i.test(what)) return 'wait'
  return 'calm'
}

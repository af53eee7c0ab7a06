import type { OutboxStatus } from 'onceonly/outbox'
import { useAsk } from '../../parts/ask.ts'
import { countText, durationText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { Empty } from '../../parts/states.tsx'
import { type AnswerOf, question } from '../api.ts'
import { CardBox, Loaded, Page } from '../page.tsx'
import { InboxLetters, OutboxLetters } from './dead-letters.tsx'

/** The outbox, the consumers, and their dead letters. */
export function EventsPage({ consumer }: { readonly consumer: string | null }) {
  const [asked, again] = useAsk<AnswerOf<'events'>>(question('/events'))
  return (
    <Page title="Events">
      <Loaded asked={asked} again={again}>
        {({ outbox, consumers }) => (
          <>
            {outbox === null ? null : <Outbox status={outbox} />}
            <CardBox title="Consumers" isFlush>
              {consumers.length === 0 ? (
                <Empty title="No consumer has received a message in the last hour" />
              ) : (
                <table class="plain">
                  <thead>
                    <tr>
                      <th>Consumer</th>
                      <th class="number">Last hour</th>
                      <th class="number">Failing</th>
                      <th class="number">Waiting keys</th>
                      <th class="number">Dead letters</th>
                    </tr>
                  </thead>
                  <tbody>
                    {consumers.map((each) => (
                      <tr key={each.consumer} class={each.deadLetters > 0 ? 'alarming' : ''}>
                        <td>
                          <a href={addressOf(['events', 'inbox', each.consumer])}>{each.consumer}</a>
                        </td>
                        <td class="number">{countText(each.lastHour)}</td>
                        <td class="number">{countText(each.failing)}</td>
                        <td class="number">{countText(each.waitingKeys)}</td>
                        <td class="number">{countText(each.deadLetters)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              )}
            </CardBox>
          </>
        )}
      </Loaded>
      {consumer === null ? <OutboxLetters done={again} /> : <InboxLetters consumer={consumer} done={again} />}
    </Page>
  )
}

function Outbox({ status }: { readonly status: OutboxStatus }) {
  const tiles: readonly (readonly [string, string, boolean])[] = [
    ['Waiting', countText(status.pending), false],
    ['Lag', durationText(status.lagMs), status.lagMs > 60_000],
    ['Failing', countText(status.failing), status.failing > 0],
    ['Parked keys', countText(status.parkedKeys), status.parkedKeys > 0],
    ['Dead letters', countText(status.deadLetters), status.deadLetters > 0],
    ['Relays', countText(status.relays), status.relays === 0],
    ['Unheld partitions', countText(status.unheldPartitions), status.unheldPartitions > 0],
  ]
  return (
    <ul class="tiles small" aria-label="Outbox">
      {tiles.map(([title, value, isBad]) => (
        <li key={title}>
          <div class={isBad ? 'card tile bad' : 'card tile'}>
            <b>{value}</b>
            <span>{title}</span>
          </div>
        </li>
      ))}
    </ul>
  )
}

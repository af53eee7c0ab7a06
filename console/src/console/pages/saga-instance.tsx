import type { InstanceView } from 'onceonly/admin'
import { useAsk } from '../../parts/ask.ts'
import { Badge, type Tone } from '../../parts/badge.tsx'
import { agoText, storedText, timeText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { StoredText } from '../../parts/scroll.tsx'
import { Timeline } from '../../parts/timeline.tsx'
import { type AnswerOf, question } from '../api.ts'
import { useNow } from '../live.ts'
import { CardBox, Facts, Loaded, Page } from '../page.tsx'
import { instanceTone } from '../states.ts'

type HistoryEntry = InstanceView['history'][number]

const tones: Readonly<Record<HistoryEntry['did'], Tone>> = {
  handled: 'good',
  ignored: 'plain',
  deferred: 'wait',
}

/** One instance: what came, what it did about it, and what it waits for. */
export function InstancePage({ saga, id }: { readonly saga: string; readonly id: string }) {
  const [asked, again] = useAsk<InstanceView>(
    question(`/sagas/${encodeURIComponent(saga)}/instances/${encodeURIComponent(id)}`),
  )
  return (
    <Loaded asked={asked} again={again}>
      {(instance) => <Detail instance={instance} />}
    </Loaded>
  )
}

function Detail({ instance }: { readonly instance: InstanceView }) {
  const now = useNow()
  const [described] = useAsk<AnswerOf<'sagas'>>(question('/sagas'))
  const sagas = described.kind === 'loaded' ? described.value.described : []
  const failed = sagas.find(({ name }) => name === instance.saga)?.failed ?? []
  const { saga, id, state, version, createdAt, updatedAt, completedAt, data, history, pending } = instance
  return (
    <Page
      title={
        <>
          <code>{id}</code> <Badge tone={instanceTone(state, completedAt, failed)}>{state}</Badge>
        </>
      }
      about={
        <>
          <a href={addressOf(['sagas'])}>Sagas</a> / <a href={addressOf(['sagas', saga])}>{saga}</a>
        </>
      }
    >
      <div class="columns">
        <CardBox title="What came, and what was done">
          <Timeline nowMs={now} moments={history.map(momentOf)} />
        </CardBox>
        <div class="stack">
          <CardBox title="The instance">
            <Facts
              facts={[
                ['State', state],
                ['Version', String(version)],
                ['Began', timeText(createdAt)],
                ['Moved', timeText(updatedAt)],
                ['Finished', completedAt === null ? null : timeText(completedAt)],
              ]}
            />
          </CardBox>
          <CardBox title="What it waits for">
            {pending.length === 0 ? <p class="soft">Nothing is scheduled and nothing was deferred.</p> : null}
            <Facts facts={pending.map(({ name, event, dueAt }) => [name ?? event, agoText(dueAt, now)] as const)} />
          </CardBox>
          <CardBox title="Data">
            <StoredText>{data === null ? 'Visible to operators only.' : storedText(data)}</StoredText>
          </CardBox>
        </div>
      </div>
    </Page>
  )
}

function momentOf(entry: HistoryEntry) {
  const { at, event, did } = entry
  return { atMs: at, tone: tones[did], title: event, about: aboutOf(entry).join(' · ') }
}

function aboutOf(entry: HistoryEntry): readonly string[] {
  switch (entry.did) {
    case 'handled': {
      const sent = entry.emitted.map(({ how, topic, count }) => `${how} ${topic}${count === 1 ? '' : ` × ${count}`}`)
      return [[entry.state, ...entry.path].join(' → '), ...sent]
    }
    case 'ignored':
      return ['ignored', entry.because ?? entry.why]
    case 'deferred':
      return ['deferred', `in ${entry.state}`]
  }
}

import type { Replay, ReplayStep } from 'onceonly/run'
import { useAsk } from '../../parts/ask.ts'
import { Badge, type Tone } from '../../parts/badge.tsx'
import { storedText } from '../../parts/format.ts'
import { StoredText } from '../../parts/scroll.tsx'
import { question } from '../api.ts'
import { CardBox, Loaded } from '../page.tsx'

const tones: Readonly<Record<ReplayStep['status'], Tone>> = {
  same: 'good',
  changed: 'bad',
  added: 'calm',
  removed: 'bad',
  moved: 'wait',
  pending: 'plain',
  unreached: 'plain',
}

/** What today's code makes of this run, beside what it did. Nothing is performed. */
export function ReplayView({ runId }: { readonly runId: string }) {
  const [asked, again] = useAsk<Replay>(question(`/runs/${encodeURIComponent(runId)}/replay`))
  return (
    <CardBox title="Replay" isFlush>
      <Loaded asked={asked} again={again}>
        {({ verdict, steps, result, blocked, unevaluated }) => (
          <>
            <div class="toolbar">
              <Badge tone={verdict === 'diverged' ? 'bad' : 'good'}>{verdict.replaceAll('-', ' ')}</Badge>
              <span class="soft">{`Nothing was performed; ${unevaluated} steps cannot be evaluated without acting.`}</span>
              {blocked.length === 0 ? null : <span class="soft">{`Refused: ${blocked.join(', ')}`}</span>}
            </div>
            <table class="plain diff">
              <thead>
                <tr>
                  <th>Step</th>
                  <th>Then</th>
                  <th>Today</th>
                </tr>
              </thead>
              <tbody>
                {steps.map(({ id, tick, status, diff }) => (
                  <>
                    <tr key={`${id}/${tick}`} class={status}>
                      <th scope="row">{`${tick}  ${id}`}</th>
                      <td colSpan={2}>
                        <Badge tone={tones[status]}>{status}</Badge>
                      </td>
                    </tr>
                    {diff.map((each) => (
                      <DiffRow key={each.path} difference={each} />
                    ))}
                  </>
                ))}
                {result.identical === false ? (
                  <DiffRow difference={{ path: 'result', original: result.original, replayed: result.replayed }} />
                ) : null}
              </tbody>
            </table>
          </>
        )}
      </Loaded>
    </CardBox>
  )
}

function DiffRow({ difference: { path, original, replayed } }: { readonly difference: ReplayStep['diff'][number] }) {
  return (
    <tr class="difference">
      <td>
        <code>{path}</code>
      </td>
      <td>
        <StoredText kind="then">{original === undefined ? '—' : storedText(original)}</StoredText>
      </td>
      <td>
        <StoredText kind="today">{replayed === undefined ? '—' : storedText(replayed)}</StoredText>
      </td>
    </tr>
  )
}

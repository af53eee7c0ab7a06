import { useAsk } from '../../parts/ask.ts'
import { Badge } from '../../parts/badge.tsx'
import { PlainTable } from '../../parts/plain-table.tsx'
import { addressOf } from '../../parts/router.ts'
import { ShortId } from '../../parts/short-id.tsx'
import { Time } from '../../parts/timeline.tsx'
import { type AnswerOf, question } from '../api.ts'
import { CardBox, Loaded } from '../page.tsx'
import { runTone } from '../states.ts'

/** More are a list of their own. */
const SHOWN = 20

interface RunChildrenProps {
  readonly runId: string
  readonly now: number
}

/** The runs that this one began and waits for, newest first. */
export function RunChildren({ runId, now }: RunChildrenProps) {
  const [asked, again] = useAsk<AnswerOf<'runs'>>(question('/runs', { parent: runId, limit: String(SHOWN) }))
  return (
    <CardBox title="Children" isFlush end={<a href={addressOf(['runs'], { parent: runId })}>All children</a>}>
      <Loaded asked={asked} again={again}>
        {({ rows }) => (
          <PlainTable heads={['Run', 'Definition', 'State', 'Began']}>
            {rows.map((child) => (
              <tr key={child.runId}>
                <td>
                  <a href={addressOf(['runs', child.runId])}>
                    <ShortId id={child.runId} />
                  </a>
                </td>
                <td>{child.definition}</td>
                <td>
                  <Badge tone={runTone(child.state)}>{child.state}</Badge>
                </td>
                <td>
                  <Time atMs={child.startedAt} nowMs={now} />
                </td>
              </tr>
            ))}
          </PlainTable>
        )}
      </Loaded>
    </CardBox>
  )
}

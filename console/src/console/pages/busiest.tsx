import { useAsk } from '../../parts/ask.ts'
import { countText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { Empty } from '../../parts/states.tsx'
import { type AnswerOf, question } from '../api.ts'
import { CardBox, Loaded } from '../page.tsx'

/** The callers with the most attempts. */
export function Busiest() {
  const [asked, again] = useAsk<AnswerOf<'busiest'>>(question('/busiest', { kind: 'users' }))
  return (
    <CardBox title="Busiest callers, last hour" isFlush>
      <Loaded asked={asked} again={again}>
        {({ rows }) =>
          rows.length === 0 ? (
            <Empty title="No attempts" />
          ) : (
            <table class="plain busiest">
              <thead>
                <tr>
                  <th>Operation</th>
                  <th>Caller</th>
                  <th class="number">Granted</th>
                  <th class="number">Replays</th>
                  <th class="number">Refused</th>
                </tr>
              </thead>
              <tbody>
                {rows.slice(0, 8).map(({ tenant, caller, operation, claims, replays, conflicts, inProgress }) => (
                  <tr key={`${tenant}/${caller}/${operation}`}>
                    <td>
                      <a href={addressOf(['records'], { tenant, caller, operation })}>{operation}</a>
                    </td>
                    <td>{`${tenant} / ${caller}`}</td>
                    <td class="number">{countText(claims)}</td>
                    <td class="number">{countText(replays)}</td>
                    <td class="number">{countText(conflicts + inProgress)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Loaded>
    </CardBox>
  )
}

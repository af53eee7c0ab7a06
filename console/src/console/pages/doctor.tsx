import type { Finding } from 'onceonly/admin'
import { useAsk } from '../../parts/ask.ts'
import { Badge, type Tone } from '../../parts/badge.tsx'
import { type AnswerOf, question } from '../api.ts'
import { CardBox, Loaded } from '../page.tsx'

const tones: Readonly<Record<Finding['verdict'], Tone>> = { ok: 'good', warning: 'wait', danger: 'bad' }

/** Whether the store is set up so that its promises hold. */
export function Doctor() {
  const [asked, again] = useAsk<AnswerOf<'doctor'>>(question('/doctor'))
  return (
    <CardBox title="Doctor" isFlush>
      <Loaded asked={asked} again={again}>
        {({ findings }) => (
          <table class="plain">
            <tbody>
              {findings.map(({ name, verdict, found, advice }) => (
                <tr key={name}>
                  <td>
                    <Badge tone={tones[verdict]}>{verdict}</Badge>
                  </td>
                  <td>
                    <b>{name}</b> <span class="soft">{found}</span>
                    {verdict === 'ok' || advice === null ? null : <div>{advice}</div>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Loaded>
    </CardBox>
  )
}

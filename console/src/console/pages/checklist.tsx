import { useAsk } from '../../parts/ask.ts'
import { Badge } from '../../parts/badge.tsx'
import { type AnswerOf, question } from '../api.ts'
import { CardBox, Loaded, Page } from '../page.tsx'

/** Every declared operation, and its answers to the questions of the design. */
export function ChecklistPage() {
  const [asked, again] = useAsk<AnswerOf<'checklist'>>(question('/checklist'))
  return (
    <Page title="Checklist" about="What every operation that changes something answers about being repeated.">
      <Loaded asked={asked} again={again}>
        {({ routes, open }) => (
          <>
            {open.length === 0 ? null : <p class="notice">{`${open.length} questions have no answer yet.`}</p>}
            <CardBox title={`${routes.length} operations`} isFlush>
              {routes.map(({ method, path, kind, operation, answers }) => (
                <details class="folded" key={`${method} ${path}`}>
                  <summary>
                    <b class="method">{method}</b>
                    <code>{path}</code>
                    <span class="soft">{operation ?? kind}</span>
                    {answers.some(({ answer }) => answer === null) ? <Badge tone="wait">open</Badge> : null}
                  </summary>
                  <table class="plain answers">
                    <tbody>
                      {answers.map(({ topic, question, answer }) => (
                        <tr key={topic}>
                          <th scope="row">{question}</th>
                          <td>{answer ?? <Badge tone="wait">open</Badge>}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </details>
              ))}
            </CardBox>
          </>
        )}
      </Loaded>
    </Page>
  )
}

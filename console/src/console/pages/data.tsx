import { useAsk } from '../../parts/ask.ts'
import { Badge } from '../../parts/badge.tsx'
import { PlainTable } from '../../parts/plain-table.tsx'
import { type AnswerOf, question } from '../api.ts'
import { CardBox, Facts, Loaded, Page } from '../page.tsx'
import { useMayAct } from '../session.tsx'
import { EraseForm } from './erase.tsx'
import { QuotaList } from './quotas.tsx'

/** What is stored: how long it stays, how much of it there is, what encrypts it, and how it is erased. */
export function DataPage({ query }: { readonly query: URLSearchParams }) {
  const mayAct = useMayAct()
  return (
    <Page
      title="Data"
      about="What is stored, how long it stays, what limits it, what encrypts it, and how it is erased."
    >
      <Retention />
      <QuotaList workspace={query.get('workspace') ?? ''} />
      <div class="columns">
        <Encryption />
        {mayAct ? <EraseForm /> : null}
      </div>
    </Page>
  )
}

function Retention() {
  const [asked, again] = useAsk<AnswerOf<'retention'>>(question('/retention'))
  return (
    <CardBox title="Retention" isFlush>
      <Loaded asked={asked} again={again}>
        {({ rows }) => (
          <PlainTable heads={['What', 'Kept', 'Changed by']}>
            {rows.map(({ what, kept, setting }) => (
              <tr key={what}>
                <td>{what}</td>
                <td>{kept}</td>
                <td>{setting === null ? <span class="faint">nothing: it is fixed</span> : <Coded text={setting} />}</td>
              </tr>
            ))}
          </PlainTable>
        )}
      </Loaded>
    </CardBox>
  )
}

/** The name of a variable is code; in a sentence, what stands between backticks. */
function Coded({ text }: { readonly text: string }) {
  if (/^\w+$/.test(text)) return <code>{text}</code>
  return <>{text.split('`').map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}</>
}

function Encryption() {
  const [asked, again] = useAsk<AnswerOf<'encryption'>>(question('/encryption'))
  return (
    <CardBox title="Encryption">
      <Loaded asked={asked} again={again}>
        {(answer) =>
          answer.encrypted ? (
            <Facts
              facts={[
                ['Writes with', <code>{answer.writeWith}</code>],
                ['Keys', <Keys ids={answer.keys} />],
                ['Data is encrypted with', <Keys ids={answer.writers} />],
                ['Can be removed', <Keys ids={answer.removable} />],
                [
                  'From before encryption',
                  answer.plain ? (
                    <>
                      <Badge tone="wait">may be left</Badge> run <code>onceonly rekey</code>
                    </>
                  ) : (
                    'nothing'
                  ),
                ],
              ]}
            />
          ) : (
            <p class="soft">
              The store is not encrypted. Set <code>ONCEONLY_ENCRYPTION_KEYS</code> to encrypt what it keeps from then
              on.
            </p>
          )
        }
      </Loaded>
    </CardBox>
  )
}

function Keys({ ids }: { readonly ids: readonly string[] }) {
  if (ids.length === 0) return <>none</>
  return (
    <>
      {ids.map((id) => (
        <span class="pair" key={id}>
          <code>{id}</code>
        </span>
      ))}
    </>
  )
}

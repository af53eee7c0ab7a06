import { useEffect, useState } from 'preact/hooks'
import icon from '../icon.svg'
import { Badge } from '../parts/badge.tsx'
import { Failed, Loading } from '../parts/states.tsx'
import { ThemeSwitch } from '../parts/theme.tsx'
import { type Api, createApi, readDemo } from './api.ts'
import { chat } from './chat.ts'
import type { Demonstration, Outcome, Shown } from './demo.ts'
import { escalations } from './escalations.ts'
import { imports } from './imports.ts'
import { messages } from './messages.ts'
import { outreach } from './outreach.ts'

const demonstrations: readonly Demonstration[] = [messages, escalations, imports, outreach, chat]

type Entrance =
  | { readonly kind: 'asking' }
  | { readonly kind: 'open'; readonly api: Api }
  | { readonly kind: 'closed' }
  | { readonly kind: 'failed'; readonly message: string }

/** The five systems, each with one thing to press that shows its promise. */
export function HomeApp() {
  const [entrance, setEntrance] = useState<Entrance>({ kind: 'asking' })
  const begin = () => {
    readDemo().then(
      (demo) => setEntrance(demo === null ? { kind: 'closed' } : { kind: 'open', api: createApi(demo) }),
      (error: unknown) => setEntrance({ kind: 'failed', message: messageOf(error) }),
    )
  }
  useEffect(begin, [])
  return (
    <div class="home">
      <header class="masthead">
        <a class="brand" href="/">
          <img src={icon} alt="" />
          Onceonly
        </a>
        <nav aria-label="Parts of this server">
          <a href="/console">Console</a>
          <a href="/chat">Chat</a>
          <a href="/docs">API</a>
          <a href="/healthz">Health</a>
        </nav>
        <ThemeSwitch />
      </header>
      <main>
        <h1>Retries are safe here</h1>
        <p class="lead">
          Five systems built on Onceonly: each runs an effect once per key, records its outcome, and answers every retry
          from the record. Press a button: it asks more than once, and shows the answers side by side.
        </p>
        <Systems entrance={entrance} again={begin} />
      </main>
    </div>
  )
}

function Systems({ entrance, again }: { readonly entrance: Entrance; readonly again: () => void }) {
  switch (entrance.kind) {
    case 'asking':
      return <Loading />
    case 'failed':
      return <Failed message={entrance.message} retry={again} />
    case 'closed':
      return (
        <>
          <p class="notice">
            This server gives no demo key to this page: it has no demo workspace, or you are on another machine. Use the
            API with a key of your workspace.
          </p>
          {demonstrations.map((each) => (
            <System key={each.name} demonstration={each} api={null} />
          ))}
        </>
      )
    case 'open':
      return (
        <>
          {demonstrations.map((each) => (
            <System key={each.name} demonstration={each} api={entrance.api} />
          ))}
        </>
      )
  }
}

type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'running' }
  | { readonly kind: 'done'; readonly outcome: Outcome; readonly turn: number }
  | { readonly kind: 'failed'; readonly message: string }

interface SystemProps {
  readonly demonstration: Demonstration
  /** Null where the server gives no key away. */
  readonly api: Api | null
}

function System({ demonstration, api }: SystemProps) {
  const { name, title, promise, button, operations } = demonstration
  const [state, setState] = useState<State>({ kind: 'idle' })
  const [turn, setTurn] = useState(1)
  const press = async () => {
    if (api === null) return
    setState({ kind: 'running' })
    try {
      setState({ kind: 'done', outcome: await demonstration.run(api), turn })
      setTurn(turn + 1)
    } catch (error) {
      setState({ kind: 'failed', message: messageOf(error) })
    }
  }
  return (
    <section class="card system" aria-labelledby={`system-${name}`} data-turn={state.kind === 'done' ? state.turn : 0}>
      <div class="head">
        <div>
          <h2 id={`system-${name}`}>{title}</h2>
          <p>{promise}</p>
          <code class="faint">{operations}</code>
        </div>
        <button
          type="button"
          class="primary"
          disabled={api === null || state.kind === 'running'}
          onClick={() => void press()}
        >
          {state.kind === 'running' ? 'Asking …' : button}
        </button>
      </div>
      <div aria-live="polite">
        {state.kind === 'failed' ? (
          <p class="notice bad" role="alert">
            {state.message}
          </p>
        ) : null}
        {state.kind === 'done' ? <Answers outcome={state.outcome} /> : null}
      </div>
    </section>
  )
}

function Answers({ outcome: { answers, kept, verdict, links } }: { readonly outcome: Outcome }) {
  return (
    <>
      <ul class="answers">
        {answers.map((answer) => (
          <AnswerCard key={answer.title} answer={answer} />
        ))}
      </ul>
      <p class={kept ? 'verdict kept' : 'verdict broken'}>
        <b>{kept ? 'Kept' : 'Not kept'}</b> {verdict}
        {links.map(({ text, address }) => (
          <a key={address} href={address}>
            {text}
          </a>
        ))}
      </p>
    </>
  )
}

function AnswerCard({ answer: { title, badge, tone, facts } }: { readonly answer: Shown }) {
  return (
    <li>
      <h3>
        {title} <Badge tone={tone}>{badge}</Badge>
      </h3>
      <dl>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </li>
  )
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

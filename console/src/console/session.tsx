import { createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import { ask, Refused, signedOut } from '../parts/ask.ts'
import { api } from './api.ts'
import { Brand } from './shell.tsx'

/** A viewer looks; an operator also acts. */
export type Role = 'viewer' | 'operator'

interface SessionAnswer {
  readonly signedIn: boolean
  readonly role: Role | null
  readonly name: string | null
  /** A warning for all users about how this console is reached; null when there is none. */
  readonly note: string | null
  /** The pages that this server has something for. */
  readonly pages: readonly string[]
}

export type Session =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'signed-out'; readonly note: string | null }
  | {
      readonly kind: 'signed-in'
      readonly role: Role
      readonly name: string
      readonly note: string | null
      readonly pages: readonly string[]
    }

const address = `${api}/session`

/** Whether the signed-in user may act. */
export const RoleContext = createContext<Role>('viewer')

export function useMayAct(): boolean {
  return useContext(RoleContext) === 'operator'
}

/** The role that is signed in, by the cookie that no script can read. */
export function useSession(): readonly [Session, (answer: SessionAnswer | null) => void] {
  const [session, setSession] = useState<Session>({ kind: 'unknown' })
  const become = (answer: SessionAnswer | null) => setSession(sessionOf(answer))
  useEffect(() => {
    const leave = () => setSession((before) => (before.kind === 'signed-in' ? sessionOf(null) : before))
    window.addEventListener(signedOut, leave)
    ask<SessionAnswer>(address).then(become, () => become(null))
    return () => window.removeEventListener(signedOut, leave)
  }, [])
  return [session, become]
}

function sessionOf(answer: SessionAnswer | null): Session {
  if (answer === null || !answer.signedIn || answer.role === null) {
    return { kind: 'signed-out', note: answer?.note ?? null }
  }
  const { role, note, pages } = answer
  return { kind: 'signed-in', role, name: answer.name ?? role, note, pages }
}

export async function signOut(): Promise<void> {
  await ask(address, { method: 'DELETE' }).catch(() => undefined)
}

interface SignInProps {
  readonly note: string | null
  readonly done: (answer: SessionAnswer) => void
}

export function SignIn({ note, done }: SignInProps) {
  const [token, setToken] = useState('')
  const [name, setName] = useState('')
  const [refusal, setRefusal] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    try {
      const who = name.trim() === '' ? {} : { name: name.trim() }
      done(await ask<SessionAnswer>(address, { method: 'POST', body: { token, ...who } }))
    } catch (error) {
      setRefusal(refusalOf(error))
      setBusy(false)
    }
  }
  return (
    <main class="sign-in">
      <form class="card" aria-labelledby="sign-in" onSubmit={(event) => void submit(event)}>
        <Brand />
        <h1 id="sign-in">Sign in to the console</h1>
        <p class="soft">With an operator or viewer token.</p>
        <div class="field">
          <label for="name">Your name, for the audit</label>
          <input
            id="name"
            autocomplete="username"
            maxLength={100}
            value={name}
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        </div>
        <div class="field">
          <label for="token">Token</label>
          <input
            id="token"
            type="password"
            autocomplete="current-password"
            required
            autofocus
            value={token}
            onInput={({ currentTarget }) => setToken(currentTarget.value)}
          />
        </div>
        {refusal === null ? null : (
          <p class="notice bad" role="alert">
            {refusal}
          </p>
        )}
        <button class="primary" disabled={busy}>
          Sign in
        </button>
        {note === null ? null : <p class="faint">{note}</p>}
      </form>
    </main>
  )
}

function refusalOf(error: unknown): string {
  if (!(error instanceof Refused)) return String(error)
  return error.status === 401 ? 'No such token.' : error.message
}

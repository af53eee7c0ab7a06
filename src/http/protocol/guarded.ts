import { isOnceError } from '../../ledger/core/errors.ts'
import { SECOND } from '../../ledger/core/limits.ts'
import type { Pointer } from '../../ledger/core/record.ts'
import { isVerdict, released } from '../../ledger/core/verdict.ts'
import type { Ended } from '../../ledger/granted.ts'
import type { GuardedAttempt, Verdict } from '../../ledger/guard/guard.ts'
import type { Answer, Incoming } from './exchange.ts'
import { headerOf } from './exchange.ts'
import { hungUp } from './leaving.ts'
import { unreadable } from './read.ts'
import type { StoredAnswer } from './record.ts'
import type { RouteGuard } from './route.ts'
import type { Running, RunRules } from './running.ts'
import { createRunning } from './running.ts'
import type { Voice } from './voice.ts'

interface Guarded<N> {
  readonly incoming: Incoming
  readonly request: N
  readonly signal: AbortSignal | undefined
  readonly voice: Voice
  readonly name: string
  readonly rules: RunRules
}

type BegunGuarded<Tx> =
  | { readonly kind: 'unprotected' }
  | { readonly kind: 'answer'; readonly answer: Answer }
  | Running<Tx>

/** An original that took longer than its duplicate waited is probably there by then. */
const PENDING_RETRY_MS = SECOND

/** As under a key: the handler's answer ends the effect, here under the lock on the content. */
export async function beginGuarded<N, Tx>(guard: RouteGuard<N>, asked: Guarded<N>): Promise<BegunGuarded<Tx>> {
  const { incoming, request, voice, rules, signal } = asked
  const first = Promise.withResolvers<GuardedAttempt | { readonly verdict: Verdict<StoredAnswer | null> }>()
  const ended = Promise.withResolvers<StoredAnswer>()
  // The lock is given back where no handler will run for it any more.
  ended.promise.catch(() => {})
  const effect = async (lock: GuardedAttempt | null) => {
    // Without a lock there is nothing to wait for: the handler runs without protection.
    if (lock === null) return null
    if (signal?.aborted === true) throw released(new Error('The client hung up before its handler began.'))
    first.resolve(lock)
    return underLock(lock, ended.promise)
  }
  try {
    const sent = guard.send(request, effect, async () => incoming.body())
    sent.then((verdict) => first.resolve({ verdict }), first.reject)
    const begun = await first.promise
    if ('verdict' in begun) return await told(guard, asked, begun.verdict)
    const settle = async (how: Ended) => {
      if ('value' in how) ended.resolve(how.value as StoredAnswer)
      else ended.reject(how.thrown)
      await sent
      return { kind: 'executed', value: null } as const
    }
    return createRunning({ context: begun, inside: (work) => work(), settle }, rules)
  } catch (error) {
    if (signal?.aborted === true) return { kind: 'answer', answer: hungUp(voice) }
    return { kind: 'answer', answer: refused(asked, error) }
  }
}

async function told<N>(
  guard: RouteGuard<N>,
  { incoming, request, voice, name }: Guarded<N>,
  verdict: Verdict<StoredAnswer | null>,
): Promise<{ readonly kind: 'unprotected' } | { readonly kind: 'answer'; readonly answer: Answer }> {
  switch (verdict.kind) {
    case 'sent':
      throw new Error('The guard has let the request through, but its effect never ran.')
    case 'unguarded':
      return { kind: 'unprotected' }
    case 'duplicate':
      return { kind: 'answer', answer: await guard.duplicate(verdict, request) }
    case 'pending': {
      const detail = 'An identical request is still being processed.'
      const problem = { operation: name, detail, instance: incoming.target, retryAfterMs: PENDING_RETRY_MS }
      const answer = (await guard.pending?.(request)) ?? voice.say('request-in-progress', problem)
      return { kind: 'answer', answer }
    }
  }
}

/** A body that cannot be read, or locks that cannot be asked by a guard that fails closed. Rethrows everything else. */
function refused<N>({ incoming, voice, name }: Guarded<N>, error: unknown): Answer {
  const { target } = incoming
  const found = unreadable(error)
  if (found !== null) return voice.say(found.situation, { ...found.detail, instance: target })
  if (isOnceError(error)) return voice.refuse(error, { name, whileRunning: undefined, target })
  throw error
}

/** The handler's response decides the lock's fate. */
async function underLock(lock: GuardedAttempt, answered: Promise<StoredAnswer>): Promise<StoredAnswer> {
  let stored: StoredAnswer
  try {
    stored = await answered
  } catch (thrown) {
    // Refused, or not taken at all: it certainly did not happen. Of a fault that is unknown.
    if (isVerdict(thrown)) lock.failed()
    throw thrown
  }
  // A lock that names no original would be given back, and the next identical request would run again.
  if (lock.pointer === null) await lock.attach(originalOf(stored))
  return stored
}

/** In a pointer there is room for the usual locations. */
const LONGEST_LOCATION_CHARS = 300

function originalOf({ status, headers }: StoredAnswer): Pointer {
  const location = headerOf(headers, 'location')
  return location === null || location === '' || location.length > LONGEST_LOCATION_CHARS
    ? { type: 'status', id: String(status) }
    : { type: 'location', id: location }
}

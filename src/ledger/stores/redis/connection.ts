import { createRuntime } from '../../../runtime/runtime.ts'
import type { AppliedWord } from '../../core/errors.ts'
import { SECOND } from '../../core/limits.ts'
import { createOverdueWatch } from '../../store/overdue.ts'
import type { RedisClient } from './driver.ts'
import { connectionLike } from './driver.ts'
import { awayError, isDemoted, isScriptMissing, storeError, timeoutError } from './errors.ts'
import type { RedisLink } from './link.ts'
import type { Script } from './script.ts'

/** When a call must be answered, by the monotonic clock. All calls share one timer, because almost none gets there. */
export interface CallDeadline {
  readonly timeoutMs: number
  readonly endsAtMs: number
}

export function deadlineIn(timeoutMs: number): CallDeadline {
  return { timeoutMs, endsAtMs: performance.now() + timeoutMs }
}

export interface Connection {
  /** One command. A lost answer means what `whenLost` says. */
  send(command: string, args: string[], deadline: CallDeadline, whenLost: AppliedWord): Promise<unknown>
  /**
   * `words` is all of an EVALSHA: the hash of the script, the number of keys, the keys, the arguments. `seen` is called with
   * the answer when it arrives, in the order in which the server gave its answers; a promise may be late. What it throws
   * is the call's error.
   */
  run(script: Script, words: string[], deadline: CallDeadline, seen?: Seen): Promise<unknown>
  stop(): void
}

/** A server that is down gets this long to come back before callers get an error; most restarts take longer anyway. */
const READY_MS = 1 * SECOND
/** A server that takes this long for a command of microseconds is as good as away, whatever the caller's patience. */
const ANSWER_MS = 3 * SECOND

type Seen = (answer: unknown) => void

/** A command under way. */
interface Sent {
  readonly link: RedisLink
  readonly waitMs: number
  readonly endsAtMs: number
  readonly whenLost: AppliedWord
  readonly seen: Seen
  readonly reject: (error: Error) => void
  isOver: boolean
}

const unseen: Seen = () => undefined

export function createConnection(client: RedisClient): Connection {
  const waiting = new Set<() => void>()
  /** Commands under way, in the order in which they were sent and are answered; those before `oldest` are over. */
  const sent: Sent[] = []
  let oldest = 0
  let own: RedisLink | null = null
  /** Since when there is no server, on the monotonic clock; null while there is one. */
  let awayMs: number | null = performance.now()
  const watch = createOverdueWatch(createRuntime(), () => sent.length > 0, endOverdue)

  /** Lazily, so that an unused store has no connection. */
  function connected(): RedisLink {
    if (own !== null) return own
    own = connectionLike(client)
    own.on('ready', () => {
      awayMs = null
      for (const wake of waiting) wake()
    })
    own.on('close', () => {
      awayMs ??= performance.now()
    })
    awayMs = performance.now()
    return own
  }

  function ready(link: RedisLink, deadline: CallDeadline): Promise<RedisLink> {
    // Later callers wait only for the rest of this time: a server that stays down costs it once.
    const nowMs = performance.now()
    const leftMs = (awayMs ?? nowMs) + READY_MS - nowMs
    if (leftMs <= 0) return Promise.reject(awayError())
    return new Promise((resolve, reject) => {
      const wake = () => {
        clearTimeout(timer)
        waiting.delete(wake)
        if (link.status === 'ready') resolve(link)
        else reject(awayError())
      }
      const timer = setTimeout(wake, Math.min(leftMs, Math.max(0, deadline.endsAtMs - nowMs)))
      waiting.add(wake)
    })
  }

  function endOverdue(nowMs: number): void {
    for (const each of sent.slice(oldest)) {
      if (each.isOver || each.endsAtMs > nowMs) continue
      ended(each)
      each.reject(timeoutError(each.waitMs, each.whenLost))
      // A connection that says nothing for so long is given up: the next one may lead to a server that answers.
      each.link.disconnect(true)
    }
  }

  function ended(each: Sent): void {
    each.isOver = true
    while (sent[oldest]?.isOver === true) oldest++
    if (oldest < sent.length) return
    sent.length = 0
    oldest = 0
  }

  function send(
    command: string,
    args: string[],
    deadline: CallDeadline,
    whenLost: AppliedWord,
    seen: Seen = unseen,
  ): Promise<unknown> {
    const link = connected()
    if (link.status === 'ready') return sendOn(link, command, args, deadline, whenLost, seen)
    return ready(link, deadline).then(() => sendOn(link, command, args, deadline, whenLost, seen))
  }

  function sendOn(
    link: RedisLink,
    command: string,
    args: string[],
    deadline: CallDeadline,
    whenLost: AppliedWord,
    seen: Seen,
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const waitMs = Math.min(ANSWER_MS, deadline.timeoutMs)
      const endsAtMs = Math.min(performance.now() + ANSWER_MS, deadline.endsAtMs)
      const each: Sent = { link, waitMs, endsAtMs, whenLost, seen, reject, isOver: false }
      sent.push(each)
      watch(waitMs)
      link.call(command, args).then(
        (answer) => {
          if (each.isOver) return
          ended(each)
          try {
            each.seen(answer)
            resolve(answer)
          } catch (error) {
            reject(error as Error)
          }
        },
        (error: unknown) => {
          if (each.isOver) return
          ended(each)
          reject(error as Error)
          if (isDemoted(error)) link.disconnect(true)
        },
      )
    })
  }

  return {
    send: (command, args, deadline, whenLost) =>
      send(command, args, deadline, whenLost).catch((error: unknown) => {
        throw storeError(error, whenLost)
      }),
    run: ({ lua, whenLost }, words, deadline, seen) =>
      send('EVALSHA', words, deadline, whenLost, seen).catch((error: unknown) => {
        if (!isScriptMissing(error)) throw storeError(error, whenLost)
        // A server that was restarted knows no scripts; it refused before anything began.
        return send('EVAL', words.with(0, lua), deadline, whenLost, seen).catch((again: unknown) => {
          throw storeError(again, whenLost)
        })
      }),
    stop: () => own?.disconnect(),
  }
}

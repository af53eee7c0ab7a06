import type { AppliedWord } from '../../core/errors.ts'
import { SECOND } from '../../core/limits.ts'
import type { Deadline } from '../../store/deadline.ts'
import type { RedisClient } from './driver.ts'
import { connectionLike } from './driver.ts'
import { awayError, isDemoted, isScriptMissing, storeError, timeoutError } from './errors.ts'
import type { RedisLink } from './link.ts'
import type { Script } from './script.ts'

export interface Connection {
  /** One command. A lost answer means what `whenLost` says. */
  send(command: string, args: readonly (string | number)[], deadline: Deadline, whenLost: AppliedWord): Promise<unknown>
  run(script: Script, keys: readonly string[], args: readonly (string | number)[], deadline: Deadline): Promise<unknown>
  stop(): void
}

/** A server that is down gets this long to come back before callers get an error; most restarts take longer anyway. */
const READY_MS = 1 * SECOND
/** A server that takes this long for a command of microseconds is as good as away, whatever the caller's patience. */
const ANSWER_MS = 3 * SECOND

export function createConnection(client: RedisClient): Connection {
  const waiting = new Set<() => void>()
  let own: RedisLink | null = null
  /** Since when there is no server, on the monotonic clock; null while there is one. */
  let awayMs: number | null = performance.now()

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

  function ready(deadline: Deadline): Promise<RedisLink> {
    const link = connected()
    if (link.status === 'ready') return Promise.resolve(link)
    // Later callers wait only for the rest of this time: a server that stays down costs it once.
    const leftMs = (awayMs ?? performance.now()) + READY_MS - performance.now()
    if (leftMs <= 0) return Promise.reject(awayError())
    return new Promise((resolve, reject) => {
      const wake = () => {
        clearTimeout(timer)
        waiting.delete(wake)
        if (link.status === 'ready') resolve(link)
        else reject(awayError())
      }
      const timer = setTimeout(wake, Math.min(leftMs, deadline.remainingMs()))
      waiting.add(wake)
    })
  }

  async function send(
    command: string,
    args: readonly (string | number)[],
    deadline: Deadline,
    whenLost: AppliedWord,
  ): Promise<unknown> {
    const link = await ready(deadline)
    return new Promise((resolve, reject) => {
      const late = () => {
        reject(timeoutError(Math.min(ANSWER_MS, deadline.timeoutMs), whenLost))
        // A connection that says nothing for so long is given up: the next one may lead to a server that answers.
        link.disconnect(true)
      }
      const timer = setTimeout(late, ANSWER_MS)
      const off = deadline.onPassed(late)
      const refused = (error: unknown) => {
        reject(error as Error)
        if (isDemoted(error)) link.disconnect(true)
      }
      link
        .call(command, ...args)
        .then(resolve, refused)
        .finally(() => {
          clearTimeout(timer)
          off()
        })
    })
  }

  return {
    send: async (command, args, deadline, whenLost) => {
      try {
        return await send(command, args, deadline, whenLost)
      } catch (error) {
        throw storeError(error, whenLost)
      }
    },
    run: async (script, keys, args, deadline) => {
      const { lua, sha, whenLost } = script
      const rest = [keys.length, ...keys, ...args]
      try {
        return await send('EVALSHA', [sha, ...rest], deadline, whenLost).catch((error: unknown) => {
          // A server that was restarted knows no scripts; it refused before anything began.
          if (isScriptMissing(error)) return send('EVAL', [lua, ...rest], deadline, whenLost)
          throw error
        })
      } catch (error) {
        throw storeError(error, whenLost)
      }
    },
    stop: () => own?.disconnect(),
  }
}

import { SECOND } from '../../core/limits.ts'
import type { Wake, Watch } from '../../store/port.ts'
import { createWaiters } from '../../store/waiters.ts'
import type { RedisClient } from './driver.ts'
import { connectionLike } from './driver.ts'
import type { RedisLink } from './link.ts'
import type { Names } from './names.ts'

export interface Watchers {
  watch(wake: Wake): Watch
  stop(): void
}

/** A server that does not answer the subscription by then does not notify; those who wait poll. */
const ANSWER_MS = 5 * SECOND

/**
 * One connection that does nothing but listen. It comes back by itself, and then says that anything may have changed.
 */
export function createWatchers(client: RedisClient, names: Names): Watchers {
  const waiters = createWaiters()
  let listener: { readonly link: RedisLink; readonly ready: Promise<void> } | null = null

  /** Kept until the store stops: subscribing again for every waiter would cost more than a quiet connection. */
  function listen(): Promise<void> {
    listener ??= subscribe()
    return listener.ready
  }

  function subscribe() {
    const ready = Promise.withResolvers<void>()
    const link = connectionLike(client)
    let first = true
    link.on('message', (channel, id) => {
      if (channel === names.channel) waiters.wake([id])
    })
    const listening = async () => {
      await link.subscribe(names.channel).catch(() => undefined)
      ready.resolve()
      // Changes during the disconnect are unknown.
      if (!first) waiters.wake(null)
      first = false
    }
    // At every connection again, whatever the driver does about it by itself.
    link.on('ready', () => void listening())
    setTimeout(ready.resolve, ANSWER_MS).unref()
    return { link, ready: ready.promise }
  }

  return {
    watch: (wake) => {
      const stop = waiters.add(wake)
      return { ready: listen(), stop }
    },
    stop: () => {
      waiters.clear()
      listener?.link.disconnect()
    },
  }
}

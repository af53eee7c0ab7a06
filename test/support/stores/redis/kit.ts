import type { Store } from 'onceonly'
import { redisStore } from 'onceonly/redis'
import { conformanceCases, runCase } from 'onceonly/testing'

/** Every case of the kit, each under a prefix of its own, through one client. */
export async function passKit(
  client: Parameters<typeof redisStore>[0],
  name: string,
  options: { readonly buckets?: number } = {},
): Promise<void> {
  let prefixes = 0
  for (const each of conformanceCases({ histories: 1 })) {
    const prefix = `${name}:${++prefixes}`
    const stores: Store[] = []
    const another = async () => {
      const store = redisStore(client, { prefix, testClock: true, ...options })
      stores.push(store)
      return store
    }
    const close = async () => {
      for (const store of stores) await store.stop()
    }
    await runCase(each, async () => ({ store: await another(), another, close }))
  }
}

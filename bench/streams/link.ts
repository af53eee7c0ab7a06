import type { Proxy } from '../../tools/proxy/index.ts'
import { createProxy } from '../../tools/proxy/index.ts'
import type { StreamsTask } from './task.ts'
import { TICK_LEAST_MS } from './task.ts'

/** A link with the task's delay, which breaks now and then. */
export async function openLink(targetPort: number, { roundTripMs, cuts }: StreamsTask) {
  const proxy: Proxy = await createProxy({ targetPort })
  proxy.delayMs = roundTripMs / 2
  const breaking = setInterval(
    () => {
      if (Math.random() < cuts) proxy.cut()
    },
    Math.max(TICK_LEAST_MS, roundTripMs),
  )
  return {
    port: proxy.port,
    async stop() {
      clearInterval(breaking)
      await proxy.stop()
    },
  }
}

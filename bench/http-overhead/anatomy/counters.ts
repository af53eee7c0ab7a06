import { createHook } from 'node:async_hooks'
import crypto from 'node:crypto'
import { Session } from 'node:inspector/promises'
import { syncBuiltinESMExports } from 'node:module'
import { GCProfiler, getHeapStatistics } from 'node:v8'
import type { Figures } from '../../harness/figures.ts'
import { fileOf, groupOf } from './groups.ts'

/** One way to look at requests: runs the work, and says what one request of it took. */
export type Counter = (work: () => Promise<void>, requests: number) => Promise<Figures>

/** CPU time, and what is allocated between the collections. Promises are counted elsewhere, which makes them dear. */
export const memory: Counter = async (work, requests) => {
  globalThis.gc?.()
  const profiler = new GCProfiler()
  let usedBytes = getHeapStatistics().used_heap_size
  const cpu = process.cpuUsage()
  profiler.start()
  await work()
  const { statistics } = profiler.stop()
  const { user, system } = process.cpuUsage(cpu)
  let allocatedBytes = 0
  let collectionUs = 0
  for (const { beforeGC, afterGC, cost } of statistics) {
    allocatedBytes += beforeGC.heapStatistics.usedHeapSize - usedBytes
    usedBytes = afterGC.heapStatistics.usedHeapSize
    collectionUs += cost
  }
  allocatedBytes += getHeapStatistics().used_heap_size - usedBytes
  const scavenges = statistics.filter(({ gcType }) => gcType === 'Scavenge').length
  return {
    cpuUs: (user + system) / requests,
    allocatedKb: allocatedBytes / 1_024 / requests,
    scavengesPer1000: (scavenges * 1_000) / requests,
    collectionUs: collectionUs / requests,
  }
}

/** What a request makes that the collector or the event loop has to see to. */
export const objects: Counter = async (work, requests) => {
  const made = new Map<string, number>()
  const hook = createHook({ init: (_id, type) => void made.set(type, (made.get(type) ?? 0) + 1) })
  const { AbortController: Abort } = globalThis
  const { createHash, hash } = crypto
  let aborts = 0
  let hashes = 0
  globalThis.AbortController = class extends Abort {
    constructor() {
      super()
      aborts++
    }
  }
  crypto.createHash = (algorithm, ...rest) => {
    if (algorithm === 'sha256') hashes++
    return createHash(algorithm, ...rest)
  }
  crypto.hash = ((algorithm: string, ...rest: [never]) => {
    if (algorithm === 'sha256') hashes++
    return hash(algorithm, ...rest)
  }) as typeof hash
  syncBuiltinESMExports()
  hook.enable()
  await work()
  hook.disable()
  Object.assign(globalThis, { AbortController: Abort })
  Object.assign(crypto, { createHash, hash })
  syncBuiltinESMExports()
  const of = (type: string) => (made.get(type) ?? 0) / requests
  return {
    promises: of('PROMISE'),
    timers: of('Timeout'),
    immediates: of('Immediate'),
    abortControllers: aborts / requests,
    sha256: hashes / requests,
  }
}

/** Where the CPU is, function by function, without the functions that they call. */
export const selfTimes: Counter = (work, requests) =>
  withProfiler(async (inspector) => {
    await inspector.post('Profiler.setSamplingInterval', { interval: SAMPLE_US })
    await inspector.post('Profiler.start')
    await work()
    const { profile } = await inspector.post('Profiler.stop')
    const tookUs = new Map<number, number>()
    profile.samples?.forEach((id, index) => {
      tookUs.set(id, (tookUs.get(id) ?? 0) + (profile.timeDeltas?.[index] ?? 0))
    })
    const figures: Record<string, number> = {}
    for (const { id, callFrame } of profile.nodes) {
      // Starting the profiler walks the whole heap, once.
      if (callFrame.functionName === '(idle)' || callFrame.url === 'node:inspector') continue
      const name = `${SELF}${groupOf(callFrame)}${BETWEEN}${callFrame.functionName || '(anonymous)'} ${fileOf(callFrame)}`
      figures[name] = (figures[name] ?? 0) + (tookUs.get(id) ?? 0) / requests
    }
    return figures
  })

const SAMPLE_US = 200
/** How the names of such figures begin, and what stands between the group and the function. */
export const SELF = 'self:'
export const BETWEEN = ' | '

/** Our own files and functions on the way of one request, as `npm run lab -- walk` counts them. */
export const way: Counter = (work) =>
  withProfiler(async (inspector) => {
    await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    await inspector.post('Profiler.takePreciseCoverage')
    await work()
    const { result } = await inspector.post('Profiler.takePreciseCoverage')
    const ours = result.filter(({ url }) => url.startsWith(SOURCE))
    const entered = ours.map(({ functions }) =>
      functions.map(({ ranges }) => ranges[0]?.count ?? 0).filter((calls) => calls > 0),
    )
    return {
      files: entered.filter((calls) => calls.length > 0).length,
      functions: entered.flat().length,
      calls: entered.flat().reduce((sum, calls) => sum + calls, 0),
    }
  })

const SOURCE = new URL('../../../src/', import.meta.url).href

async function withProfiler<T>(use: (inspector: Session) => Promise<T>): Promise<T> {
  const inspector = new Session()
  inspector.connect()
  try {
    await inspector.post('Profiler.enable')
    return await use(inspector)
  } finally {
    inspector.disconnect()
  }
}

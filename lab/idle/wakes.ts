import { AsyncLocalStorage } from 'node:async_hooks'
import fs, { type WatchListener } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import promises from 'node:timers/promises'

/**
 * What wakes an idle process, by its origin: timers that fire, and announcements of the file system. Must be imported
 * before anything that takes a timer. Node's own timers are not seen.
 */
export const wakes = new Map<string, number>()

/** Deep enough to come from a timer to the loop's owner. */
Error.stackTraceLimit = 30

/** A loop takes its next timer in the context of the last one, where its owner is not on the stack any more. */
const origins = new AsyncLocalStorage<string>()
/** One function is the callback of all timers of a loop that is due at times. */
const known = new WeakMap<object, string>()

/** The next timer of a loop. */
const LOOPS = /src\/runtime\/loop\.ts|service\/rounds\.ts/
/** Where loops and timers are made for others. */
const SHARED = /src\/runtime\/|src\/ledger\/store\/held-leases\.ts|lab\/idle\/|service\/rounds\.ts/
const OWN = /^(?!.*node_modules).*\/((?:src|service)\/.*)$/
const PACKAGE = /node_modules\/((?:@[^/]+\/)?[^/]+)\//
const FRAME = /^\s*at (?:async )?(?:(?:new )?(?<name>[^(]*?) \()?(?<url>file:[^)]*?|\/[^)]*?):\d+:\d+\)?$/

const isShared = (line: string) => !line.includes('/') || SHARED.test(line)

/** A file of ours and its function, or the name of a package. */
function ownerIn(stack: readonly string[]): string | null {
  const frames = stack.map((line) => FRAME.exec(line)?.groups ?? {})
  const own = frames.find(({ url = '' }) => OWN.test(url))
  if (own !== undefined) return `${OWN.exec(own['url'] ?? '')?.[1]} ${(own['name'] ?? '').replace(/^.*\./, '')}`.trim()
  return stack.map((line) => PACKAGE.exec(line)?.[1]).find((name) => name !== undefined) ?? null
}

function originOf(callback: unknown): string {
  const isFunction = typeof callback === 'function'
  const stack = (new Error().stack ?? '').split('\n').slice(1)
  const above = stack.findIndex((line) => !isShared(line))
  const before = isFunction ? known.get(callback) : undefined
  const origin = before ?? ownerIn(stack.filter((line) => !isShared(line))) ?? origins.getStore() ?? 'unknown'
  if (isFunction) known.set(callback, origin)
  // What awaits the next timer of a loop continues in this context. Other timers are taken below a loop, too.
  const nearest = above === -1 ? stack : stack.slice(0, above)
  if (nearest.some((line) => LOOPS.test(line))) origins.enterWith(origin)
  return origin
}

function woke(origin: string): void {
  wakes.set(origin, (wakes.get(origin) ?? 0) + 1)
}

type Callback = (...args: unknown[]) => unknown

function counted(origin: string, callback: Callback): Callback {
  return function fire(this: unknown, ...args: unknown[]) {
    woke(origin)
    return origins.run(origin, () => callback.apply(this, args))
  }
}

for (const name of ['setTimeout', 'setInterval'] as const) {
  const before = globalThis[name] as (...args: unknown[]) => unknown
  const taken = (callback: Callback, ...rest: unknown[]) => before(counted(originOf(callback), callback), ...rest)
  globalThis[name] = Object.assign(taken, before) as never
}

const sleep = promises.setTimeout
promises.setTimeout = (async (ms: number, value: unknown, options: object) => {
  const origin = originOf(null)
  const slept = await sleep(ms, value, options)
  woke(origin)
  return slept
}) as typeof sleep

const watch = fs.watch as (...args: unknown[]) => unknown
fs.watch = ((path: string, options: object, heard: WatchListener<string>) => {
  const origin = originOf(null)
  return watch(path, options, counted(origin, heard as Callback))
}) as never

syncBuiltinESMExports()

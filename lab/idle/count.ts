import { DatabaseSync, StatementSync } from 'node:sqlite'
import { Client } from 'pg'
import type { Counts } from './reasons.ts'
import { wakes } from './wakes.ts'

/**
 * Loaded before a server: counts the statements that its drivers send, what wakes it, the turns of its event loop and its
 * processor time, from one message of the parent to the next.
 */
const statements = new Map<string, number>()
let cpu = process.cpuUsage()
let turns = loopCount()

function loopCount(): number {
  return performance.nodeTiming.uvMetricsInfo.loopCount
}

function count(text: string): void {
  const name = text.replaceAll(/\s+/g, ' ').trim()
  statements.set(name, (statements.get(name) ?? 0) + 1)
}

type Sends = (this: unknown, ...args: unknown[]) => unknown

/** The method as before, with a look at what it is called on and with. */
function watch(prototype: object, method: string, textOf: (self: unknown, first: unknown) => string): void {
  const methods = prototype as Record<string, Sends>
  const before = methods[method] as Sends
  methods[method] = function counted(...args) {
    count(textOf(this, args[0]))
    return before.apply(this, args)
  }
}

for (const method of ['run', 'get', 'all', 'iterate']) {
  watch(StatementSync.prototype, method, (self) => (self as StatementSync).sourceSQL)
}
watch(DatabaseSync.prototype, 'exec', (_self, text) => String(text))
watch(Client.prototype, 'query', (_self, query) =>
  typeof query === 'string' ? query : String((query as { readonly text?: unknown }).text),
)

watch(Client.prototype, 'connect', () => 'connect')

process.on('message', (message) => {
  const { user, system } = process.cpuUsage(cpu)
  const counts: Counts = {
    cpuMs: (user + system) / 1_000,
    turns: loopCount() - turns,
    statements: Object.fromEntries(statements),
    wakes: Object.fromEntries(wakes),
  }
  if (message === 'end') process.send?.(counts)
  statements.clear()
  wakes.clear()
  cpu = process.cpuUsage()
  turns = loopCount()
})
// The parent may be gone before the server is.
process.channel?.unref()

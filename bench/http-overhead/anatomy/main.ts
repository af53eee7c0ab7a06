import type { Bench } from '../../harness/bench.ts'
import { number } from '../../harness/compare.ts'
import type { Figures } from '../../harness/figures.ts'
import { columns } from '../../harness/report.ts'
import { adapters } from '../task.ts'
import { BETWEEN, SELF } from './counters.ts'
import type { AnatomyTask } from './task.ts'

const PROGRAM = import.meta.resolve('./side.ts')
/** A function that takes less of a request than this is not worth a line. */
const LEAST_US = 0.3
const MOST_FUNCTIONS = 5

const counted = {
  cpuUs: 'CPU µs',
  promises: 'promises',
  timers: 'timers',
  immediates: 'immediates',
  abortControllers: 'aborts',
  sha256: 'SHA-256',
  allocatedKb: 'KB made',
  scavengesPer1000: 'scavenges/1000',
  collectionUs: 'GC µs',
  files: 'files',
  functions: 'functions',
  calls: 'calls',
} as const

/** `--anatomy`: what one request of the empty route makes and calls, by adapter and store. `--only fastify` shortens it. */
export async function showAnatomy({ options, side, note, progress }: Bench): Promise<void> {
  const count = options.quick ? 1_000 : 5_000
  note(`per request, of ${count} after twice as many; background work is off`)
  const found: { readonly name: string; readonly figures: Figures }[] = []
  for (const adapter of adapters) {
    for (const { store, requests } of cases) {
      const name = `${adapter}, ${store === 'none' ? 'bare' : `${store}, ${requests}`}`
      if (options.only !== null && !name.includes(options.only)) continue
      progress(name)
      const task: AnatomyTask = { adapter, kept: { store }, requests, count }
      found.push({ name, figures: await side({ program: PROGRAM, task }) })
    }
  }
  const names = Object.keys(counted) as (keyof typeof counted)[]
  const lines = found.map(({ name, figures }) => [name, ...names.map((figure) => number(figures[figure] ?? 0))])
  console.log(`\n${columns(['', ...names.map((figure) => counted[figure])], lines, [0])}`)
  for (const { name, figures } of found) {
    if (options.only === null && !name.startsWith('fastify')) continue
    console.log(
      `\n${name}: CPU µs per request by its own time, as sampled\n${columns(TIMES, selfTimesOf(figures), [0, 2])}`,
    )
  }
  console.log()
}

const cases = [
  { store: 'none', requests: 'first' },
  { store: 'memory', requests: 'first' },
  { store: 'memory', requests: 'replay' },
  { store: 'sqlite', requests: 'first' },
  { store: 'sqlite', requests: 'replay' },
] as const

const TIMES = ['', 'µs', 'of which']

/** One line for each wing, the dearest first, with its dearest functions. */
function selfTimesOf(figures: Figures): string[][] {
  const groups = new Map<string, { us: number; functions: [string, number][] }>()
  for (const [name, us] of Object.entries(figures)) {
    if (!name.startsWith(SELF)) continue
    const [group = '', called = ''] = name.slice(SELF.length).split(BETWEEN)
    const all = groups.get(group) ?? { us: 0, functions: [] }
    all.us += us
    all.functions.push([called, us])
    groups.set(group, all)
  }
  return [...groups]
    .filter(([, { us }]) => us >= LEAST_US)
    .sort(([, a], [, b]) => b.us - a.us)
    .map(([group, { us, functions }]) => {
      const dearest = functions.sort(([, a], [, b]) => b - a).slice(0, MOST_FUNCTIONS)
      const named = dearest.filter(([, each]) => each >= LEAST_US).map(([called, each]) => `${called} ${number(each)}`)
      return [group, number(us), named.join(', ')]
    })
}

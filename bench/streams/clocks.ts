import { compareCounts, SortedCounts } from 'onceonly/stream/parts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import type { ClocksTask } from './task.ts'

/** Comparisons of two clocks that have all nodes and differ in one. CPU time: other work on the machine does not count. */
const { nodes, form, comparisons } = readTask<ClocksTask>()
const names = Array.from({ length: nodes }, (_, index) => `node-${(index * 7_919) % 1_000}`)
const earlier = Object.fromEntries(names.map((name, index) => [name, index + 1]))
// As a peer sends it, which has met the nodes in another order.
const later = JSON.parse(
  JSON.stringify(Object.fromEntries(names.toReversed().map((name) => [name, (earlier[name] ?? 0) + 1]))),
) as typeof earlier

const sorted = [new SortedCounts(earlier), new SortedCounts(later)] as const
const compare = form === 'sorted' ? () => sorted[0].compare(sorted[1]) : () => compareCounts(earlier, later)

let before = 0
function round(): void {
  before = 0
  for (let done = 0; done < comparisons; done++) if (compare() === 'before') before += 1
}

round()
const began = process.cpuUsage()
round()
const { user, system } = process.cpuUsage(began)
mustEqual('all came before', before, comparisons)
answer({ cpuUs: (user + system) / comparisons })

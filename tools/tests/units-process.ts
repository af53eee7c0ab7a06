import { join, relative } from 'node:path'
import { run } from 'node:test'
import { root } from '../command.ts'
import { LEAK_BOUND_MS, TEST_BOUND_MS } from './limits.ts'
import { addEvent, noResults } from './results.ts'

const files = process.argv.slice(2).map((file) => join(root, file))
const results = noResults()
for await (const event of run({ files, cwd: root, isolation: 'none', timeout: TEST_BOUND_MS })) {
  const file = 'file' in event.data ? event.data.file : undefined
  addEvent(results, event, file ?? '', file === undefined ? 'a unit test' : relative(root, file))
}
process.send?.(results, () => process.disconnect())
process.exitCode = results.failed > 0 ? 1 : 0

// A process that does not end by itself shows that a test left a connection, a timer or a child behind.
setTimeout(() => {
  console.error(`Left behind by a unit test: ${process.getActiveResourcesInfo().join(', ')}`)
  process.exit(1)
}, LEAK_BOUND_MS).unref()

import { parseArgs } from 'node:util'
import { codeLinesOf } from '../tools/code-lines.ts'
import { capture } from '../tools/command.ts'

/**
 * `npm run lab -- lines`: how many lines the product has at a commit (`--at COMMIT`, the last one when left out), by wing,
 * without comments, empty lines and tests.
 */
const { values } = parseArgs({ options: { at: { type: 'string', default: 'HEAD' } } })

async function git(...args: string[]): Promise<string> {
  const { ok, output } = await capture('git', args)
  if (!ok) throw new Error(output)
  return output
}

const listed = await git('ls-tree', '-r', '--name-only', values.at, '--', 'src', 'service', 'console')
const product = listed.split('\n').filter((path) => /\.tsx?$/.test(path) && !/\.test\.tsx?$|\/test-[^/]*$/.test(path))
const wings = Map.groupBy(product, (path) => /^src\/[^/]+(?=\/)|^[^/]+/.exec(path)?.[0] ?? path)
let files = 0
let lines = 0
const row = (wing: string, ofFiles: number, ofLines: number) =>
  console.log(`${wing.padEnd(16)}${String(ofFiles).padStart(6)}${String(ofLines).padStart(8)}`)
console.log(`${'wing'.padEnd(16)}${'files'.padStart(6)}${'lines'.padStart(8)}`)
for (const [wing, paths] of wings) {
  const text = await git('show', ...paths.map((path) => `${values.at}:${path}`))
  const count = codeLinesOf(text).length
  row(wing, paths.length, count)
  files += paths.length
  lines += count
}
row('together', files, lines)

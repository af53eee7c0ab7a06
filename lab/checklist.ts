import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { neededServers } from '../tools/tests/needs.ts'
import { withScratch } from '../tools/tests/scratch.ts'
import { withServers } from '../tools/tests/servers.ts'
import { PAGE, pageOf } from './checklist/page.ts'
import type { Removal, Row } from './checklist/row.ts'
import { rows } from './checklist/rows.ts'
import { tryTest } from './checklist/try.ts'

/**
 * `npm run lab -- checklist`: takes the rule behind every promise out of the code, one at a time, and runs the tests that
 * are said to notice. Each of them passes with the rule and fails without it.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** Writes the page of the documentation, and runs nothing. */
    page: { type: 'boolean', default: false },
    /** Leaves out the run with all rules in place, when the tests were just seen to pass. */
    only: { type: 'boolean', default: false },
  },
})
const root = join(import.meta.dirname, '..')
/** What passes with every rule in place is not tried twice. */
const seenToPass = new Set<string>()

if (values.page) {
  writeFileSync(join(root, PAGE), pageOf(rows))
} else {
  const asked = rows.filter(({ id }) => positionals.length === 0 || positionals.includes(id))
  const files = asked.flatMap(({ removals }) => removals.flatMap(({ noticed }) => noticed.map(({ file }) => file)))
  const wrong = await withScratch(() => withServers(neededServers(files), () => tryAll(asked)))
  console.log(wrong.length === 0 ? 'Every rule is missed by a test.' : `\n${wrong.join('\n')}`)
  process.exitCode = wrong.length === 0 ? 0 : 1
}

async function tryAll(asked: readonly Row[]): Promise<string[]> {
  const wrong: string[] = []
  const all = asked.flatMap((row) => row.removals.map((removal) => ({ id: row.id, removal })))
  for (const [index, { id, removal }] of all.entries()) {
    const { problem, hung } = await tryRemoval(removal)
    const result = problem ?? (hung ? 'noticed, at its time limit' : 'noticed')
    console.log(`${index + 1}/${all.length} ${id} without “${removal.without}”: ${result}`)
    if (problem !== null) wrong.push(`${id} (${removal.without}): ${problem}`)
  }
  return wrong
}

interface Trial {
  /** Why the removal shows nothing; null when it was noticed as it should be. */
  readonly problem: string | null
  readonly hung: boolean
}

async function tryRemoval(removal: Removal): Promise<Trial> {
  let hung = false
  const wrong = (problem: string): Trial => ({ problem, hung })
  const found = readFileSync(join(root, removal.file), 'utf8').split(removal.find).length - 1
  if (found !== 1) return wrong(`its target stands ${found} times in ${removal.file}`)
  for (const test of removal.noticed) {
    const name = `${test.file} ${test.name}`
    if (!values.only && !seenToPass.has(name)) {
      const { passed, failed, output } = await tryTest(test, null)
      if (failed > 0 || passed === 0) return wrong(`“${test.name}” does not pass with every rule in place\n${output}`)
      seenToPass.add(name)
    }
    const tried = await tryTest(test, removal)
    if (tried.failed === 0) return wrong(`“${test.name}” passes without it`)
    if (tried.broke) return wrong(`“${test.name}” could not be run without it\n${tried.output}`)
    hung ||= tried.hung
  }
  return { problem: null, hung }
}

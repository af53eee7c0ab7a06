import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

const root = join(import.meta.dirname, '..')
const project = mkdtempSync(join(tmpdir(), 'onceonly-user-'))
const installed = join(project, 'node_modules', 'onceonly')
after(() => rmSync(project, { recursive: true, force: true }))

mkdirSync(installed, { recursive: true })
copyFileSync(join(root, 'package.json'), join(installed, 'package.json'))
const compiler = join(root, 'node_modules', '.bin', 'tsc')
execFileSync(compiler, ['-p', 'tsconfig.build.json', '--outDir', join(installed, 'dist')], { cwd: root })

/** Runs a program as a user of the built package would: plain JavaScript, no conditions, none of our tools. */
function asUser(program: string): string {
  writeFileSync(join(project, 'main.mjs'), program)
  return execFileSync(process.execPath, ['main.mjs'], { cwd: project, encoding: 'utf8' })
}

const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: Record<string, unknown> }
const entries = Object.keys(exports)
  .filter((entry) => !entry.endsWith('.json'))
  .map((entry) => entry.replace('.', 'onceonly'))

for (const entry of entries) {
  test(`${entry} can be imported and gives something`, () => {
    const names = JSON.parse(asUser(`console.log(JSON.stringify(Object.keys(await import('${entry}'))))`)) as string[]
    assert.notEqual(names.length, 0)
  })
}

test('the built package runs an effect and replays it', () => {
  const printed = asUser(`
    import { createLedger } from 'onceonly'
    import { createSqliteStore } from 'onceonly/sqlite'
    const store = createSqliteStore({ path: 'once.db' })
    const once = createLedger({ store })
    const greet = once.operation({ name: 'greet', effect: 'repeatable' })
    for (const turn of [1, 2]) {
      console.log(await greet.run({ tenant: 't', caller: 'c', key: 'k' }, 'Ada', () => 'hello from turn ' + turn))
    }
    await once.stop()
    await store.stop()
  `)
  assert.equal(printed, 'hello from turn 1\nhello from turn 1\n')
})

test('no test is published', () => {
  const strays = globSync(['dist/**/*.test.*', 'dist/**/test-*'], { cwd: installed })
  assert.deepEqual(strays, [])
})

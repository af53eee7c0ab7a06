import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { createDatabase } from '../../../tools/servers/database.ts'
import { testBrowserParts } from '../../support/browser-parts.ts'
import { runReadme } from '../../support/readme.ts'
import { compile, compilers, fetchCompilers, writeConsumer } from './consumer.ts'
import { forcedIn } from './forced.ts'
import { oldestNode } from './oldest.ts'
import { npm, pack, root } from './packed.ts'
import { fetchRuntime, runtimeNames } from './runtimes.ts'
import { installByStartPage } from './start-page.ts'

const run = promisify(execFile)
const LONGEST_MS = 240_000
const folder = mkdtempSync(join(tmpdir(), 'onceonly-user-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const archive = pack(folder)
const node = oldestNode(folder)
// The start page installs the package into an empty folder; everything else is tried there, too.
const project = join(folder, 'project')
mkdirSync(project)
const start = installByStartPage(project, archive, node.path)
const installed = join(project, 'node_modules', 'onceonly')
// Before the first test: the runner ends when all tests that it knows have ended, whatever this file still waits for.
const consumer = join(folder, 'consumer')
await writeConsumer(consumer, installed)

/** Runs a program as a user of the package would: plain JavaScript, no conditions, none of our tools, the oldest Node. */
function asUser(program: string): string {
  writeFileSync(join(project, 'main.mjs'), program)
  return execFileSync(node.path, ['main.mjs'], { cwd: project, encoding: 'utf8' })
}

const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: Record<string, unknown> }
const entries = Object.keys(exports)
  .filter((entry) => !entry.endsWith('.json'))
  .map((entry) => entry.replace('.', 'onceonly'))

test('the oldest Node that we promise is the one that runs this', { skip: node.missing }, () => {
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { engines: { node: string } }
  const version = execFileSync(node.path, ['--version'], { encoding: 'utf8' }).trim()
  assert.equal(`>=${version.replace('v', '').replace(/\.0$/, '')}`, engines.node)
})

test('every entry can be imported and gives something', () => {
  const program = `
    const given = {}
    for (const entry of ${JSON.stringify(entries)}) given[entry] = Object.keys(await import(entry)).length
    console.log(JSON.stringify(given))`
  const given = JSON.parse(asUser(program)) as Record<string, number>
  assert.deepEqual(Object.keys(given), entries)
  for (const [entry, names] of Object.entries(given)) assert.notEqual(names, 0, entry)
})

test('the installed package runs an effect and replays it', () => {
  const printed = asUser(`
    import { createLedger } from 'onceonly'
    import { sqliteStore } from 'onceonly/sqlite'
    const store = sqliteStore('once.db')
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

test('the command is installed with it', () => {
  const printed = execFileSync(node.path, [join(project, 'node_modules', '.bin', 'onceonly'), '--help'], {
    cwd: project,
    encoding: 'utf8',
  })
  assert.match(printed, /^onceonly COMMAND/)
})

test('what the package finds by its path is where it looks', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const command = join(project, 'node_modules', '.bin', 'onceonly')
  assert.equal(execFileSync(node.path, [command, '--version'], { cwd: project, encoding: 'utf8' }).trim(), version)
  const printed = asUser(`
    import { readPages } from 'onceonly/pages'
    const pages = await readPages()
    const { gunzipSync } = await import('node:zlib')
    const page = await pages.answer({ path: '/console' })
    const path = '/console/' + /assets[^"]+js/.exec(new TextDecoder().decode(page.body))[0]
    const [plain, zipped] = await Promise.all(['identity', 'gzip'].map((acceptEncoding) => pages.answer({ path, acceptEncoding })))
    console.log(page.status, plain.status, zipped.headers['content-encoding'], Buffer.from(gunzipSync(zipped.body)).equals(plain.body))
  `)
  assert.equal(printed, '200 200 gzip true\n')
  // Each program, beside the file that starts it.
  for (const program of ['admin/cli/replay-process', 'http/gateway/fingerprint-thread']) {
    execFileSync(node.path, ['--check', join(installed, 'dist', `${program}.js`)])
    const place = join(installed, 'dist', dirname(program))
    const texts = globSync('*.js', { cwd: place }).map((file) => readFileSync(join(place, file), 'utf8'))
    assert.ok(
      texts.some((text) => new RegExp(`\`${basename(program)}\\$\\{\\w+\\(import\\.meta\\.filename\\)\\}`).test(text)),
      program,
    )
  }
})

test('a stack trace leads to files that say what they are about, and to one statement each', () => {
  const printed = asUser(`
    import { createLedger } from 'onceonly'
    import { memoryStore } from 'onceonly/memory'
    const once = createLedger({ store: memoryStore(), background: false })
    const pay = once.operation({ name: 'pay', effect: 'external' })
    const error = await pay.run({ tenant: 't', caller: 'c', key: '' }, 1, () => 1).catch((thrown) => thrown)
    console.log(error.stack)
  `)
  assert.match(printed, /^OnceError: /)
  const frames = [...printed.matchAll(/at .*?onceonly\/dist\/(\S+?):(\d+):\d+/g)]
  assert.ok(frames.length >= 4, printed)
  for (const [frame, file] of frames.slice(0, 3)) assert.equal(file, 'shared/identity.js', frame)
  assert.equal(new Set(frames.map(([, file, line]) => `${file}:${line}`)).size, frames.length)
})

test('no test, no source and no map is published', () => {
  const strays = globSync(['{dist,src}/**/*.test.*', '{dist,src}/**/test-*', 'src/**', '**/*.map'], { cwd: installed })
  assert.deepEqual(strays, [])
})

test('the start page, the changelog and the examples are inside', () => {
  for (const part of ['README.md', 'CHANGELOG.md', 'LICENSE', 'docs/start.md', 'examples/http-express.ts']) {
    assert.ok(statSync(join(installed, part)).size > 500, part)
  }
})

/** In KB of 1000 bytes, as npm counts them. */
const MOST_PACKED_KB = 700
const MOST_UNPACKED_KB = 2_000

test(`the package has at most ${MOST_PACKED_KB} KB, unpacked ${MOST_UNPACKED_KB} KB`, (t) => {
  const sizes = new Map<string, number>()
  let unpacked = 0
  for (const file of globSync('**', { cwd: installed, withFileTypes: true })) {
    if (!file.isFile()) continue
    const { size } = statSync(join(file.parentPath, file.name))
    const place = join(file.parentPath, file.name)
      .slice(installed.length + 1)
      .split('/')
      .slice(0, 2)
      .join('/')
    sizes.set(place, (sizes.get(place) ?? 0) + size)
    unpacked += size
  }
  const packed = statSync(archive).size
  t.diagnostic(`${kb(packed)} packed, ${kb(unpacked)} unpacked`)
  for (const [place, size] of [...sizes].toSorted(([, a], [, b]) => b - a).slice(0, 12)) {
    t.diagnostic(`${place}: ${kb(size)}`)
  }
  assert.ok(packed <= MOST_PACKED_KB * 1000, kb(packed))
  assert.ok(unpacked <= MOST_UNPACKED_KB * 1000, kb(unpacked))
})

function kb(bytes: number): string {
  return `${Math.ceil(bytes / 1000)} KB`
}

for (const name of runtimeNames) {
  const runtime = fetchRuntime(join(folder, `runtime-${name}`), name)
  test(`${name} runs memory, SQLite, fetch and Hono routes`, { skip: runtime.missing }, () => {
    const place = join(folder, name)
    mkdirSync(place)
    writeFileSync(join(place, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
    const { version } = JSON.parse(readFileSync(join(root, 'node_modules/hono/package.json'), 'utf8')) as {
      version: string
    }
    npm(place, ['install', archive, `hono@${version}`])
    copyFileSync(join(import.meta.dirname, 'runtimes', 'smoke.ts'), join(place, 'smoke.ts'))
    const printed = execFileSync(runtime.command, [...runtime.args, 'smoke.ts'], { cwd: place, encoding: 'utf8' })
    assert.equal(printed, 'memory\nsqlite\n')
  })
}

test('the start page, followed literally from an empty folder, ends with a protected endpoint', start)

const fetched = fetchCompilers(join(folder, 'compilers'))
for (const [name, version] of Object.entries(compilers)) {
  test(`${name}, strict: README, start page, what pages quote and every @example compile`, {
    skip: fetched.missing,
  }, () => {
    assert.deepEqual(compile(consumer, fetched.pathOf(version)), [])
  })
}

test('no program of README, pages and editor needs a cast, a `!` or a declaration of another module', () => {
  const programs = globSync(
    '{*,examples/*,orms/{example-*,guide/*,prisma-guide/src/*},frameworks/{trpc*,nest*/*},peers/*}.ts',
    {
      cwd: consumer,
      exclude: ['peers/serve.ts'],
    },
  )
  assert.ok(programs.length > 100, `${programs.length} programs`)
  assert.deepEqual(
    programs.flatMap((name) => forcedIn(name, readFileSync(join(consumer, name), 'utf8'))),
    [],
  )
})

const postgres = process.env['ONCEONLY_TEST_POSTGRES_URL']

/** Each on a database of its own, if it wants one. */
const programs = globSync(['examples/*.ts', 'orms/guide/*.ts'], { cwd: consumer })
test('the examples and the programs on ORMs run on the installed package', { concurrency: 2 }, async (t) => {
  assert.ok(programs.length > 25, `${programs.length} programs`)
  await Promise.all(
    programs.map((name) => {
      const wantsDatabase = readFileSync(join(consumer, name), 'utf8').includes("process.env['DATABASE_URL']")
      const skip = wantsDatabase && postgres === undefined && 'no PostgreSQL server'
      return t.test(name, { skip }, async () => {
        await using database = wantsDatabase ? await createDatabase(postgres ?? '') : null
        const env = { ...process.env, ...(database === null ? {} : { DATABASE_URL: database.url }) }
        const { stdout } = await run(process.execPath, [name], { cwd: consumer, timeout: LONGEST_MS, env })
        // A guide asserts, and says nothing.
        if (name.startsWith('examples/')) assert.notEqual(stdout.trim(), '')
      })
    }),
  )
})

test('the code of the README runs on the installed package', async () => {
  assert.equal(await runReadme(consumer), 'done')
})

testBrowserParts(consumer)

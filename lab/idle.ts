import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { startOwn } from '../test/support/own-server.ts'
import { createDatabase } from '../tools/servers/database.ts'
import { SERVER_VARIABLES } from '../tools/servers/index.ts'
import { type Counts, linesOf, wakeLinesOf } from './idle/reasons.ts'

/**
 * `npm run lab -- idle`: what a server and a gateway do while nothing is asked of them: processor time, turns of the event
 * loop, and statements and wake-ups with the reason for each; one without a reason fails. `--store sqlite` or `postgres`
 * for one of the two, `--minutes 10`.
 */
const { values } = parseArgs({
  options: {
    store: { type: 'string' },
    minutes: { type: 'string', default: '10' },
    texts: { type: 'boolean', default: false },
  },
})
const stores = ['sqlite', 'postgres'] as const
type StoreName = (typeof stores)[number]
const unknownStore = values.store !== undefined && !stores.some((name) => name === values.store)
if (unknownStore) throw new Error(`--store is one of ${stores.join(', ')}, not ${values.store}`)
const minutes = Number(values.minutes)
if (!(minutes > 0)) throw new Error(`--minutes is a number above 0, not ${values.minutes}`)

/**
 * Tables are made when they are first needed; and V8 gives memory of the start back by up to three whole collections, a bit
 * more than 100 s apart, each of which costs more than a minute of everything else. Then there are none.
 */
const START_MS = 330_000
/** For one minute of a server. */
const most = { statements: 300, cpuMs: 70 }
/** A tenth of what a gateway did before its background work slept until it was due. */
const tenth = { sqlite: { statements: 7, cpuMs: 3 }, postgres: { statements: 7, cpuMs: 5 } } as const

const root = join(import.meta.dirname, '..')
const counting = ['--conditions=onceonly-source', '--import', import.meta.resolve('./idle/count.ts')]

await using stack = new AsyncDisposableStack()
const wanted = stores.filter((name) => values.store === undefined || name === values.store)
const serverUrl = wanted.includes('postgres') ? await postgres() : ''
const measured = await Promise.all(wanted.flatMap((name) => [server(name), gateway(name)]))
let unknown = 0
for (const { title, counts, own } of measured) unknown += report(title, counts, own)
if (unknown > 0) process.exitCode = 1

async function postgres(): Promise<string> {
  const servers = stack.use(await startOwn('postgres'))
  return servers.env[SERVER_VARIABLES.postgres] ?? ''
}

async function database(): Promise<string> {
  return (await createDatabase(serverUrl)).url
}

async function server(name: StoreName): Promise<Measured> {
  const data = await folder()
  const env = { PORT: '0', ONCEONLY_DATA: data, ONCEONLY_STORE: name === 'postgres' ? await database() : '' }
  return await measure(`server on ${name}`, ['--max-semi-space-size=8', 'service/main.ts'], env, /listens on/)
}

async function gateway(name: StoreName): Promise<Measured> {
  const data = await folder()
  const config = join(data, 'gateway.json')
  await writeFile(config, JSON.stringify({ gateway: { upstream: 'http://127.0.0.1:9' } }))
  const store = name === 'postgres' ? await database() : join(data, 'gateway.db')
  const args = ['src/admin/cli/main.ts', 'gateway', '--config', config, '--store', store, '--listen', '0']
  return { ...(await measure(`gateway on ${name}`, args, {}, /, store/)), own: tenth[name] }
}

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'onceonly-idle-'))
  stack.defer(() => rm(made, { recursive: true, force: true }))
  return made
}

interface Bounds {
  readonly statements: number
  readonly cpuMs: number
}

interface Measured {
  readonly title: string
  readonly counts: Counts
  /** Besides those of a server. */
  readonly own: Bounds | null
}

async function measure(
  title: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  ready: RegExp,
): Promise<Measured> {
  const child = spawn(process.execPath, [...counting, ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  stack.defer(() => ended(child))
  await started(child, ready)
  await pause(START_MS)
  child.send('begin')
  await pause(minutes * 60_000)
  const answer = once(child, 'message')
  child.send('end')
  const [counts] = (await answer) as [Counts]
  return { title, counts, own: null }
}

function started(child: ChildProcess, ready: RegExp): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  child.once('exit', (code) => reject(new Error(`It ended with ${code} before it was ready.`)))
  if (child.stdout !== null) createInterface(child.stdout).on('line', (line) => ready.test(line) && resolve())
  return promise
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  await exit
}

/** Answers how many statements and wake-ups have no reason. */
function report(title: string, { cpuMs, turns, statements, wakes }: Counts, own: Bounds | null): number {
  const perMinute = (count: number) => (count / minutes).toFixed(1)
  const sum = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((all, count) => all + count, 0)
  const [sent, woken] = [sum(statements), sum(wakes)]
  const against = (bounds: Bounds) => {
    const isWithin = sent / minutes <= bounds.statements && cpuMs / minutes <= bounds.cpuMs
    return `${isWithin ? 'within' : 'above'} ${bounds.statements} statements and ${bounds.cpuMs} ms`
  }
  const judged = own === null ? against(most) : `${against(most)}, which are a server's; ${against(own)}, its own tenth`
  console.log(
    `\n${title}, per minute of ${minutes}: ${perMinute(sent)} statements, ${perMinute(woken)} wake-ups, ${perMinute(cpuMs)} ms of processor time, ${perMinute(turns)} turns of the event loop: ${judged}`,
  )
  let unknown = 0
  for (const [name, found] of [
    ['statements', linesOf(statements)],
    ['wake-ups', wakeLinesOf(wakes)],
  ] as const) {
    console.log(`  ${name}`)
    for (const { what, why, count } of found.lines) console.log(`${perMinute(count).padStart(8)}  ${what}: ${why}`)
    unknown += found.unknown.length
  }
  if (values.texts) {
    for (const [text, count] of [...Object.entries(statements), ...Object.entries(wakes)])
      console.log(`${perMinute(count).padStart(8)}  ${text.slice(0, 200)}`)
  }
  return unknown
}

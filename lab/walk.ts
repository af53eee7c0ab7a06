import { mkdtemp, rm } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import Fastify from 'fastify'
import { createLedger } from 'onceonly'
import { createProtect, onceonly } from 'onceonly/fastify'
import { sqliteStore } from 'onceonly/sqlite'

/**
 * `npm run lab -- walk`: how many files and functions of `src` one POST on SQLite enters, and how often, between request
 * and response, for a first request and for a replay from memory. `--list` names them.
 */
const { values } = parseArgs({ options: { list: { type: 'boolean', default: false } } })
const source = new URL('../src/', import.meta.url).href
const folder = await mkdtemp(join(tmpdir(), 'onceonly-walk-'))

const store = sqliteStore(join(folder, 'walk.db'))
const ledger = createLedger({ store, background: false })
const app = Fastify({ forceCloseConnections: true })
await app.register(onceonly)
const protect = createProtect({ ledger, who: () => ({ tenant: 'acme', caller: 'checkout' }) })
app.post(
  '/orders',
  protect({ name: 'order.place', effect: 'external' }, async (_request, reply) => reply.code(201).send({ id: 'o-1' })),
)
await app.listen({ host: '127.0.0.1', port: 0 })
const { port } = app.server.address() as AddressInfo

async function post(key: string, replayed: boolean): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/orders`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ item: 'book', cents: 1_200 }),
  })
  await response.text()
  if (response.status !== 201) throw new Error(`The route answered ${response.status}.`)
  const isReplay = response.headers.get('idempotent-replayed') === 'true'
  if (isReplay !== replayed) throw new Error(`The request under ${key} is ${isReplay ? 'a' : 'no'} replay.`)
}

const TURNS = 5

const inspector = new Session()
inspector.connect()
await inspector.post('Profiler.enable')
await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

interface Entered {
  readonly name: string
  readonly calls: number
}

/** The functions that were entered since the last call, by file. */
async function entered(): Promise<Map<string, Entered[]>> {
  const { result } = await inspector.post('Profiler.takePreciseCoverage')
  const files = new Map<string, Entered[]>()
  for (const { url, functions } of result) {
    if (!url.startsWith(source)) continue
    const file = fileURLToPath(url).slice(fileURLToPath(source).length)
    for (const { functionName, ranges } of functions) {
      const range = ranges[0]
      if (range === undefined || range.count === 0) continue
      const known = files.get(file) ?? []
      known.push({ name: functionName === '' ? `(at ${range.startOffset})` : functionName, calls: range.count })
      files.set(file, known)
    }
  }
  return files
}

const functionsOf = (files: ReadonlyMap<string, readonly Entered[]>) => [...files.values()].flat()

/** The shortest of some: a timer that happens to fire during one of them belongs to no request. */
async function walk(title: string, request: (turn: number) => Promise<void>): Promise<void> {
  let files: ReadonlyMap<string, Entered[]> = new Map()
  for (let turn = 1; turn <= TURNS; turn++) {
    await entered()
    await request(turn)
    const these = await entered()
    if (turn === 1 || functionsOf(these).length < functionsOf(files).length) files = these
  }
  const functions = functionsOf(files)
  const calls = functions.reduce((sum, each) => sum + each.calls, 0)
  console.log(`${title}: ${files.size} files, ${functions.length} functions, ${calls} calls`)
  if (!values.list) return
  const inOrder = [...files].sort(([a], [b]) => (a < b ? -1 : 1))
  for (const [file, functions] of inOrder) {
    const named = functions.map(({ name, calls }) => `${name} x${calls}`)
    console.log(`  ${file} (${functions.length}): ${named.join(', ')}`)
  }
}

// Opens the file, prepares the statements, and fills what is filled once.
for (const key of ['warm-1', 'warm-2']) await post(key, false)
for (let again = 0; again < 3; again++) await post('warm-1', true)
await walk('first request', (turn) => post(`walk-${turn}`, false))
// The first one reads the store, and the second makes what all further ones share.
for (let again = 0; again < 2; again++) await post('walk-1', true)
await walk('replay from memory', () => post('walk-1', true))

inspector.disconnect()
await app.close()
await ledger.stop()
await store.stop()
await rm(folder, { recursive: true })

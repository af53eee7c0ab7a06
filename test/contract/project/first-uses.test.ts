import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { ErrorRequestHandler, RequestHandler } from 'express'
import express from 'express'
import { createLedger } from 'onceonly'
import { createClient } from 'onceonly/client'
import { createProtect as protectExpress } from 'onceonly/express'
import { createProtect as protectFetch } from 'onceonly/fetch'
import { createGateway } from 'onceonly/gateway'
import { createGuard } from 'onceonly/guard'
import { createInbox } from 'onceonly/inbox'
import { createLocalBus } from 'onceonly/local'
import { mariadbStore } from 'onceonly/mariadb'
import { memoryStore } from 'onceonly/memory'
import { createNatsBroker } from 'onceonly/nats'
import { createProtect, operationStatus } from 'onceonly/node'
import { createOutbox, createRelay } from 'onceonly/outbox'
import { postgresStore } from 'onceonly/postgres'
import { createRabbitmqBroker } from 'onceonly/rabbitmq'
import { redisStore } from 'onceonly/redis'
import { createEngine, defineRun } from 'onceonly/run'
import { createSaga, defineSaga } from 'onceonly/saga'
import { sqliteStore } from 'onceonly/sqlite'
import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import { createSqlOrderLog, createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'
import { createTelemetry } from 'onceonly/telemetry'
import { listen } from '../http/listen.ts'

/** The likeliest mistakes of a first use, with the whole text that their author reads; a page shows the same table. */

const folder = mkdtempSync(join(tmpdir(), 'onceonly-first-use-'))
const memory = memoryStore()
const once = createLedger({ store: memory, background: false })
const sqlite = sqliteStore(join(folder, 'first.db'))
const sql = createLedger({ store: sqlite, background: false })
const engine = await createEngine({ ledger: sql, runs: [], work: false })
/** Its own timer never fires in a replay, which has no record of it. */
let live = true
const pause = () => (live ? Promise.resolve() : new Promise(() => {}))
const patient = defineRun('patient', async (run) => {
  await run.step('reserve', () => 1)
  await pause()
})
const tables = sqliteStore(join(folder, 'runs.db'))
const worked = createLedger({ store: tables, background: false })
const worker = await createEngine({ ledger: worked, runs: [patient] })
after(async () => {
  await worker.stop()
  await worked.stop()
  await engine.stop()
  await once.stop()
  await sql.stop()
  rmSync(folder, { recursive: true })
})

const wrong = (value: unknown) => value as never
const never = () => assert.fail('the effect ran')
const identity = { tenant: 'acme', caller: 'shop', key: 'k' }
const pay = once.operation({ name: 'pay', effect: 'external' })
const place = sql.operation({ name: 'place', effect: 'transaction' })
const mail = sql.operation({ name: 'mail', effect: 'external' })
const blank = once.operation({ name: 'blank', effect: 'external', fingerprint: () => undefined })
const served = createLedger({ store: memoryStore(), background: false })
const protect = createProtect({ ledger: once, who: () => ({ tenant: 'acme', caller: 'shop' }) })
const room = { room: 'lobby', regions: ['eu'], transport: { connect: never }, receiver: { message: never } }
const lost = defineRun('lost', async () => 1)

/** A request to a route, which `who` says to be of this caller. */
async function ask(who: { tenant: string; caller: string }, body: 'unread' | 'consumed' = 'unread'): Promise<unknown> {
  const route = protectFetch({ ledger: once, who: () => who })({ name: `order.${body}`, effect: 'external' }, never)
  const headers = { 'idempotency-key': 'k', 'content-type': 'application/json' }
  const request = new Request('http://shop.example/orders', { method: 'POST', headers, body: '{}' })
  if (body === 'consumed') await request.text()
  return await route(request)
}

/** The responses to a request and its retry; throws what the error middleware of Express gets. */
async function askExpress(...before: readonly RequestHandler[]): Promise<Response[]> {
  const errors: unknown[] = []
  const app = express()
  for (const each of before) app.use(each)
  const handler: RequestHandler = (_request, response) => void response.status(201).json({ placed: true })
  const route = protectExpress({ ledger: served, who: () => ({ tenant: 'acme', caller: 'shop' }) })
  app.post('/orders', route({ name: `order.${before.length}`, effect: 'external' }, handler as never))
  const failed: ErrorRequestHandler = (error, _request, response, _next) => {
    errors.push(error)
    response.status(500).end()
  }
  app.use(failed)
  const { port, stop } = await listen(createServer(app))
  const headers = { 'idempotency-key': 'k', 'content-type': 'application/json' }
  const send = () => fetch(`http://127.0.0.1:${port}/orders`, { method: 'POST', headers, body: '{}' })
  const answers = [await send(), await send()]
  await stop()
  if (errors.length > 0) throw errors[0]
  return answers
}

const firstUses: Readonly<Record<string, () => unknown>> = {
  "postgresStore('postgres://…')": () => postgresStore(wrong('postgres://localhost/app')),
  'postgresStore({ connectionString })': () => postgresStore(wrong({ connectionString: 'postgres://localhost/app' })),
  'postgresStore()': () => postgresStore(wrong(undefined)),
  "mariadbStore('mariadb://…')": () => mariadbStore(wrong('mariadb://localhost/app')),
  'mariadbStore on a pool of `mysql2`': () => mariadbStore(wrong({ getConnection: never, format: never })),
  'redisStore({})': () => redisStore(wrong({})),
  "sqliteStore(':memory:')": () => sqliteStore(':memory:'),
  'createLedger()': () => createLedger(wrong(undefined)),
  'createLedger({})': () => createLedger(wrong({})),
  'createLedger(store)': () => createLedger(wrong(memory)),
  'createLedger({ store: pool })': () => createLedger(wrong({ store: { query: never, connect: never } })),
  'createLedger({ store: ledger })': () => createLedger(wrong({ store: once })),
  'an operation without `effect`': () => once.operation(wrong({ name: 'refund' })),
  'an operation with `ttl`': () => once.operation(wrong({ name: 'refund', effect: 'external', ttl: 5 })),
  'an operation with `leaseMs: 30`': () => once.operation({ name: 'refund', effect: 'external', leaseMs: 30 }),
  'an operation declared twice': () => once.operation({ name: 'pay', effect: 'external' }),
  'a transaction on a store without them': () => {
    const { transactions: _, ...store } = memoryStore()
    createLedger({ store, background: false }).operation(wrong({ name: 'refund', effect: 'transaction' }))
  },
  'an operation declared after `stop`': async () => {
    const ended = createLedger({ store: memoryStore(), background: false })
    await ended.stop()
    ended.operation({ name: 'late', effect: 'external' })
  },
  'run without an effect': () => pay.run(identity, 1, wrong(undefined)),
  'run with a number as key': () => pay.run(wrong({ ...identity, key: 7 }), 1, never),
  'run with an empty tenant': () => pay.run({ ...identity, tenant: '' }, 1, never),
  'a `fingerprint` without a result': () => blank.run(identity, 1, never),
  'a leased operation inside a transaction': () => place.run(identity, 1, () => mail.run(identity, 1, never)),
  'a retry of an effect that returned a function': async () => {
    const returned = createLedger({ store: memoryStore(), background: false })
    const make = returned.operation({ name: 'make', effect: 'repeatable' })
    await make.run(identity, 1, () => never)
    await make.run(identity, 1, () => never)
  },
  'createProtect()': () => createProtect(wrong(undefined)),
  'createProtect without `who`': () => createProtect(wrong({ ledger: once })),
  'createProtect({ ledger: store })': () => createProtect(wrong({ ledger: memory, who: never })),
  'operationStatus({})': () => operationStatus(wrong({})),
  'a route whose `who` returns nothing': () => ask(wrong(undefined)),
  'a route behind a parser that consumed the body': () => ask({ tenant: 'acme', caller: 'shop' }, 'consumed'),
  'an Express route behind a parser that kept no bytes': () =>
    askExpress((request, _response, next) => void request.resume().once('end', next)),
  'protect(handler)': () => protect(wrong(never), wrong(undefined)),
  'protect(definition)': () => protect({ name: 'order.place', effect: 'external' }, wrong(undefined)),
  'a route with `timeout`': () => protect(wrong({ name: 'order.place', effect: 'external', timeout: 5 }), never),
  'createGuard({ ledger: store })': () => createGuard(wrong({ ledger: memory, name: 'mail', identity: never })),
  'createInbox({ ledger: store })': () => createInbox(wrong({ ledger: sqlite, consumer: 'billing' })),
  'createInbox on the memory store': () => createInbox(wrong({ ledger: once, consumer: 'billing' })),
  'an inbox with `window`': () => createInbox(wrong({ ledger: sql, consumer: 'billing', window: 5 })),
  'createOutbox on the memory store': () => createOutbox({ ledger: once }),
  'createOutbox({ store })': () => createOutbox(wrong({ store: sqlite })),
  'a second outbox of one ledger': () => {
    createOutbox({ ledger: sql })
    createOutbox({ ledger: sql })
  },
  'createOutbox()': () => createOutbox(wrong(undefined)),
  'createLocalBus()': () => createLocalBus(wrong(undefined)),
  'createRabbitmqBroker({ url })': () => createRabbitmqBroker(wrong({ url: 'amqp://localhost' })),
  'createRabbitmqBroker without a connection': () => createRabbitmqBroker(wrong({})),
  'createNatsBroker without `jetstream`': () => createNatsBroker(wrong({})),
  'createTelemetry({})': () => createTelemetry(wrong({})),
  'createRelay without a publisher': () => createRelay(wrong({ ledger: sql })),
  'createSaga without a definition': () => createSaga(wrong({ ledger: sql })),
  'defineSaga()': () => defineSaga(wrong(undefined)),
  'createEngine({ ledger: store })': () => createEngine(wrong({ ledger: sqlite, runs: [] })),
  'createEngine without `runs`': () => createEngine(wrong({ ledger: sql })),
  'defineRun without a body': () => defineRun('onboard', wrong(undefined)),
  'a run that is not registered': () => engine.start(lost, { runId: 'r', input: wrong(undefined) }),
  'start without options': () => engine.start(lost, wrong(undefined)),
  'a run that awaits something else than its context, when it is replayed': async () => {
    await (await worker.start(patient, { runId: 'patient', input: undefined })).result()
    live = false
    await worker.replay('patient', { timeoutMs: 50 })
  },
  'a stream client without a transport': () =>
    createStreamClient(wrong({ ...room, transport: undefined, mode: 'at-least-once' })),
  "a stream client with `mode: 'once'`": () => createStreamClient(wrong({ ...room, mode: 'once' })),
  'a stream client without a receiver': () =>
    createStreamClient(wrong({ ...room, receiver: undefined, mode: 'at-least-once' })),
  'a stream client with `storge`': () => createStreamClient(wrong({ ...room, mode: 'at-least-once', storge: 1 })),
  "createWebSocketTransport({ url: 'wss://…' })": () => createWebSocketTransport(wrong({ url: 'wss://example.com' })),
  'createSqlRoomLog on the memory store': () => createSqlRoomLog(wrong({ store: memory, region: 'eu' })),
  'createSqlOrderLog on the memory store': () => createSqlOrderLog(wrong({ store: memory })),
  'createStreamRegion without a log': () => createStreamRegion(wrong({ region: 'eu' })),
  'createGateway()': () => createGateway(wrong(undefined)),
  'a gateway with `upstrem`': () => createGateway(wrong({ ledger: once, config: { upstrem: 'http://a', routes: [] } })),
  'a gateway without an upstream': () => createGateway(wrong({ ledger: once, config: { routes: [] } })),
  'createClient with `attempst`': () => createClient(wrong({ attempst: 3 })),
  'a client with an intent and no keys': () =>
    createClient().send('http://127.0.0.1:9/', { method: 'POST', intent: 'cart-17' }),
}

async function messageOf(use: () => unknown): Promise<string> {
  try {
    await use()
  } catch (error) {
    assert.equal((error as Error).name, 'OnceError', String(error))
    return (error as Error).message
  }
  return assert.fail('it was accepted')
}

test('every first mistake is refused as the page says, before anything is claimed', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/reference/first-mistakes.md'), 'utf8')
  const shown = page.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| mistake'))
  const said: string[] = []
  for (const [what, use] of Object.entries(firstUses)) {
    const mistake = what.endsWith(')') ? `\`${what}\`` : what
    said.push(`| ${mistake} | ${(await messageOf(use)).replaceAll('|', '\\|')} |`)
  }
  assert.deepEqual(shown, said)
  assert.equal((await once.list()).rows.length, 0)
  assert.equal((await sql.list()).rows.length, 0)
})

test('a route without a body parser, and a step id that stands twice in a run, are no mistakes', async () => {
  const replayed = (await askExpress()).map(({ status, headers }) => [status, headers.get('idempotent-replayed')])
  assert.deepEqual(replayed, [
    [201, null],
    [201, 'true'],
  ])
  const keys: string[] = []
  const twice = defineRun('twice', async (run) => {
    for (const _turn of [1, 2]) await run.step('remind', ({ effectKey }) => void keys.push(effectKey))
  })
  const other = await createEngine({ ledger: worked, runs: [twice] })
  const handle = await other.start(twice, { runId: 'twice', input: undefined })
  await handle.result()
  const { steps } = await handle.view()
  await other.stop()
  assert.deepEqual(
    steps.map(({ id, tick }) => [id, tick]),
    [
      ['remind', 0],
      ['remind', 1],
    ],
  )
  assert.equal(new Set(keys).size, 2)
})

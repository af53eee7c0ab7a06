import assert from 'node:assert/strict'
import type { ProblemOptions } from '../http/protocol/problem-writer.ts'
import type { RouteDefinition } from '../http/protocol/route.ts'
import { limits } from '../ledger/core/limits.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { createLedger } from '../ledger/ledger.ts'
import type { RecordView, TransactionalStore } from '../ledger/store/port.ts'
import type { MemoryTx } from '../ledger/stores/memory/index.ts'
import { memoryStore } from '../ledger/stores/memory/index.ts'
import { signalOf } from '../ledger/twins.ts'
import type { HttpExchange, RawRequest, Reply } from './http-client.ts'
import { exchange } from './http-client.ts'
import type { Trouble } from './http-faults.ts'
import { troubled } from './http-faults.ts'
import type { Act, Asker, Call, Serve, Served, Site, SiteRoute } from './http-site.ts'

/** A store, with a business table beside it. Its clock can be moved. */
export interface HttpGround {
  readonly store: TransactionalStore<unknown>
  write(tx: unknown, row: string): Promise<void>
  written(): Promise<readonly string[]>
  close(): Promise<void>
}

/** One case of the suite: a route, what its handler does, and what clients see of it. */
export interface HttpCase {
  readonly name: string
  run(serve: Serve, open: () => Promise<HttpGround>): Promise<void>
}

export interface CaseOptions {
  readonly method?: string
  readonly path?: string
  readonly mount?: string
  readonly definition: RouteDefinition<Asker>
  readonly http?: ProblemOptions
  /** Beside the one that the case is about. */
  readonly others?: readonly Omit<SiteRoute, 'act'>[]
  readonly maxBodyBytes?: number
  /** So many servers on one store, each with a ledger of its own, asked in turn. */
  readonly servers?: number
  readonly statusAuthorize?: RouteDefinition<Asker>['authorize']
}

export interface AskOptions extends Partial<RawRequest> {
  /** Null sends none. */
  readonly key?: string | null
  readonly caller?: string
  readonly tenant?: string
  /** Null sends none. */
  readonly type?: string | null
}

export interface Stage {
  readonly ledger: Ledger<unknown>
  readonly path: string
  /** How often a handler ran. */
  readonly runs: number
  /** Errors that an adapter reported, because no client sees them. */
  readonly faults: readonly unknown[]
  /** What goes wrong with the store. */
  readonly trouble: Trouble
  /** Resolves when so many requests have come to the ledger, by all servers. */
  came(requests: number): Promise<void>
  /** Resolves when the adapter has noticed that so many clients hung up before their handlers began. */
  left(clients: number): Promise<void>
  ask(options?: AskOptions): Promise<Reply>
  open(options?: AskOptions): HttpExchange
  records(): Promise<readonly RecordView[]>
  /** A business write in the transaction of a handler. */
  write(call: Call, row: string): Promise<void>
  written(): Promise<readonly string[]>
  advance(ms: number): Promise<void>
}

type Handler = (call: Call, stage: Stage) => Act | Promise<Act>

let stages = 0

/** Declares a case. Every run has a store, a server and a tenant of its own. */
export function httpCase(
  name: string,
  options: CaseOptions,
  handler: Handler,
  body: (stage: Stage) => Promise<void>,
): HttpCase {
  return {
    name,
    async run(serve, open) {
      const ground = await open()
      const trouble: Trouble = {}
      const store = troubled(ground.store, trouble)
      const ledgers = Array.from({ length: options.servers ?? 1 }, () => createLedger({ store, background: false }))
      try {
        await played({ ground, trouble, ledgers, serve, options, handler, body })
      } finally {
        for (const ledger of ledgers) await ledger.stop()
        await ground.close()
      }
    },
  }
}

interface Play {
  readonly ground: HttpGround
  readonly trouble: Trouble
  readonly ledgers: readonly Ledger<unknown>[]
  readonly serve: Serve
  readonly options: CaseOptions
  readonly handler: Handler
  readonly body: (stage: Stage) => Promise<void>
}

async function played({ ground, trouble, ledgers, serve, options, handler, body }: Play): Promise<void> {
  const tenant = `tenant-${++stages}-${process.pid}`
  const [ledger] = ledgers as [Ledger<unknown>]
  const calls = { came: 0, left: 0 }
  const target = (options.mount ?? '') + (options.path ?? '/things')
  const faults: unknown[] = []
  const ports: number[] = []
  let runs = 0
  let asked = 0
  const open = (ask: AskOptions = {}) =>
    exchange(ports[asked++ % ports.length] ?? 0, requestOf(options.method ?? 'POST', target, ask))
  const stage: Stage = {
    ledger,
    path: target,
    faults,
    trouble,
    get runs() {
      return runs
    },
    open,
    came: (requests) => reached('requests that came to the ledger', requests, () => calls.came),
    left: (clients) => reached('clients that the adapter saw leave', clients, () => calls.left),
    ask: (ask) => open(ask).reply,
    records: async () => (await ledger.list({ tenant })).rows,
    write: async ({ context }, row) => {
      assert.ok(context !== null && 'tx' in context, 'the handler is in no transaction')
      await ground.write(context.tx, `${tenant} ${row}`)
    },
    written: async () => {
      const own = (await ground.written()).filter((row) => row.startsWith(`${tenant} `))
      return own.map((row) => row.slice(tenant.length + 1)).toSorted()
    },
    advance: (ms) => ground.store.clock.advance(ms, { timeoutMs: limits.storeCallMs }),
  }
  const act = async (call: Call) => {
    runs++
    return handler(call, stage)
  }
  const served: Served[] = []
  try {
    for (const each of ledgers) {
      const site = siteOf(options, countingCalls(each, calls), tenant, act, (error) => void faults.push(error))
      const one = await serve(site)
      served.push(one)
      ports.push(one.port)
    }
    await body(stage)
  } finally {
    for (const one of served) await one.stop()
  }
}

/** The ledger as an adapter sees it; the kit sees when a request comes to it, and when its client is known to have left. */
function countingCalls(ledger: Ledger<unknown>, calls: { came: number; left: number }): Ledger<unknown> {
  const operation = (definition: never) => {
    const declared = ledger.operation(definition)
    const begin: typeof declared.begin = (parts, input, options) => {
      calls.came += 1
      signalOf(options?.signal)?.addEventListener('abort', () => void calls.left++, { once: true })
      return declared.begin(parts, input, options)
    }
    return { ...declared, begin }
  }
  return Object.assign(Object.create(ledger) as Ledger<unknown>, { operation })
}

/** Longer than a busy machine needs; an adapter that never notices fails its case, and not the whole run. */
const NOTICED_WITHIN_MS = 10_000
const LOOK_EVERY_MS = 2

async function reached(what: string, least: number, count: () => number): Promise<void> {
  const giveUpMs = performance.now() + NOTICED_WITHIN_MS
  while (count() < least) {
    assert.ok(performance.now() < giveUpMs, `${count()} ${what}, and not ${least}`)
    await pause(LOOK_EVERY_MS)
  }
}

function siteOf(
  options: CaseOptions,
  ledger: Ledger<unknown>,
  tenant: string,
  act: SiteRoute['act'],
  onError: (error: unknown) => void,
): Site {
  const { method = 'POST', path = '/things', mount, definition, statusAuthorize } = options
  const who = ({ header }: Asker) => ({
    tenant: header('x-tenant') ?? tenant,
    caller: header('x-caller') ?? 'ann',
  })
  const http = { ...options.http, ledger, who, onError }
  const own = { method, path, definition, ...(mount === undefined ? {} : { mount }) }
  return {
    options: http,
    maxBodyBytes: options.maxBodyBytes ?? 1_024 * 1_024,
    routes: [own, ...(options.others ?? [])].map((route) => ({ ...route, act })),
    status: {
      path: '/operations/:id',
      options: { ...http, ...(statusAuthorize === undefined ? {} : { authorize: statusAuthorize }) },
    },
  }
}

function requestOf(method: string, target: string, asked: AskOptions): RawRequest {
  const { key = 'key-1', caller, tenant, headers = [], ...rest } = asked
  const bodiless = (rest.method ?? method) === 'HEAD' || (rest.method ?? method) === 'GET'
  const body = rest.body ?? (bodiless ? undefined : '{"amount":1,"to":"bob"}')
  const type = asked.type === undefined && body !== undefined ? 'application/json' : (asked.type ?? null)
  const line = (name: string, value: string | null | undefined): [string, string][] =>
    value === null || value === undefined ? [] : [[name, value]]
  return {
    method,
    target,
    ...rest,
    ...(body === undefined ? {} : { body }),
    headers: [
      ...line('idempotency-key', key),
      ...line('x-caller', caller),
      ...line('x-tenant', tenant),
      ...line('content-type', type),
      ...headers,
    ],
  }
}

/** The memory store, with a list of rows in place of a business table. */
export async function memoryGround(): Promise<HttpGround> {
  const store = memoryStore({ testClock: true })
  const rowsOf = (tx: MemoryTx) => (tx.get('rows') as readonly string[] | undefined) ?? []
  return {
    store: store as TransactionalStore<unknown>,
    write: async (tx, row) => (tx as MemoryTx).set('rows', [...rowsOf(tx as MemoryTx), row]),
    written: () =>
      store.transactions.run(async ({ tx }) => rowsOf(tx), { timeoutMs: 5_000, lockMs: 5_000, refuseTwinOf: null }),
    close: () => store.stop(),
  }
}

/** A gate that a handler waits at until the case opens it. */
export function createGate(): { readonly reached: Promise<void>; pass(): Promise<void>; open(): void } {
  const reached = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<void>()
  return {
    reached: reached.promise,
    pass: () => {
      reached.resolve()
      return opened.promise
    },
    open: () => opened.resolve(),
  }
}

export type Gate = ReturnType<typeof createGate>

/** A case whose handler waits at a gate before it acts. Every run of the case has a gate of its own, open at its end. */
export function gatedCase(
  name: string,
  definition: CaseOptions['definition'],
  act: Act,
  body: (stage: Stage, gate: Gate) => Promise<void>,
): HttpCase {
  const gateOf = perStage(createGate)
  return httpCase(
    name,
    { definition },
    async (_call, stage) => {
      await gateOf(stage).pass()
      return act
    },
    async (stage) => {
      try {
        await body(stage, gateOf(stage))
      } finally {
        gateOf(stage).open()
      }
    },
  )
}

/** Something of its own for every run of a case, although the case is declared only once. */
export function perStage<T>(make: () => T): (stage: Stage) => T {
  const made = new WeakMap<Stage, { readonly value: T }>()
  return (stage) => {
    const known = made.get(stage) ?? { value: make() }
    made.set(stage, known)
    return known.value
  }
}

export const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** The protocol's own answer: a problem document of that type. */
export function assertProblem(reply: Reply, status: number, situation: string, retryable = false): void {
  const answer = `${reply.status} ${reply.text()}`
  assert.equal(reply.status, status, answer)
  assert.equal(reply.header('content-type'), 'application/problem+json', answer)
  const document = reply.json()
  assert.equal(document.type, `/problems/${situation}`, answer)
  assert.equal(document.status, status, answer)
  assert.equal(document.retryable, retryable, answer)
  assert.equal(typeof document.title, 'string')
  assert.equal(typeof document.detail, 'string')
  if (retryable) assert.match(reply.header('retry-after') ?? '', /^[1-9]\d*$/, answer)
  assert.equal(reply.header('idempotent-replayed'), null, 'a problem is no replay')
}

/** Headers that belong to one exchange, and are allowed to differ between an answer and its replay. */
const ofTheExchange = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding', 'content-length'])

/** The same answer again: status, bytes and every header that is kept; and marked. */
export function assertReplay(replay: Reply, first: Reply, dropped: readonly string[] = []): void {
  assert.equal(replay.status, first.status, `${replay.status} ${replay.text()}`)
  assert.ok(replay.body.equals(first.body), `${replay.body.length} bytes instead of ${first.body.length}`)
  assert.ok(replay.whole && first.whole, 'cut')
  assert.equal(replay.header('idempotent-replayed'), 'true')
  assert.equal(first.header('idempotent-replayed'), null)
  const kept = ({ headers }: Reply, also: readonly string[]) =>
    headers.filter(([name]) => !ofTheExchange.has(name) && !also.includes(name)).toSorted(byName)
  assert.deepEqual(kept(replay, ['idempotent-replayed']), kept(first, dropped))
  const length = replay.header('content-length')
  if (length !== null && replay.body.length > 0) assert.equal(Number(length), replay.body.length)
}

function byName(a: readonly [string, string], b: readonly [string, string]): number {
  return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0
}

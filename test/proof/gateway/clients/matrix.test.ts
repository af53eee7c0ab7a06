import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import type { RouteRule } from 'onceonly/gateway'
import { until } from '../../../../src/testing/until.ts'
import { openGateway } from '../../../support/gateway/world.ts'
import type { Client } from './command.ts'
import { openHop } from './hop.ts'
import { libraries } from './libraries.ts'
import { programs, whyMissing } from './programs.ts'
import { sdks } from './sdks.ts'
import { type Fault, faults, type Manners, openFaulty } from './service.ts'

/** A gateway, and the service that it is right for. */
interface Setting {
  readonly name: 'default' | 'configured'
  readonly manners: Manners
  readonly rule: RouteRule
}

const settings: readonly Setting[] = [
  // As `onceonly gateway` has it without a configuration, in front of a service that knows nothing.
  { name: 'default', manners: 'plain', rule: { method: ['POST', 'PUT', 'PATCH', 'DELETE'], path: '/*' } },
  {
    name: 'configured',
    manners: 'honours',
    rule: {
      method: ['POST', 'PUT'],
      path: '/*',
      key: 'required',
      replay: 'trusted',
      honoursKeys: true,
      notDone: [500, 503],
    },
  },
]

/** What a client has in the end, and how often its command was done. */
interface Cell {
  readonly client: Client
  readonly fault: Fault
  readonly setting: Setting
  readonly effects: number
  readonly tries: number
  readonly result: { readonly id: string } | { readonly error: string }
}

/** What has to come of it. `either`: a client that retries it succeeds, and for another it was never done. */
type Outcome = 'success' | 'done, refused' | 'not done, refused' | 'either'

function expected({ client, fault, setting }: Pick<Cell, 'client' | 'fault' | 'setting'>): Outcome {
  if (client.leaves?.includes(Number(fault)) === true) return 'not done, refused'
  if (setting.name === 'configured') return fault === '409' ? 'either' : 'success'
  switch (fault) {
    case 'lost response':
    case 'slow':
      return client.resigns === true ? 'done, refused' : 'success'
    // It was done, and the response is lost.
    case 'reset before status':
    case 'cut body':
    case '500':
    case '503':
      return 'done, refused'
    case '409':
      return 'not done, refused'
    case '429':
    case '503 with Retry-After':
      return 'success'
  }
}

function outcomeOf({ effects, result }: Cell): string {
  if ('id' in result) return effects === 1 && /^made-cell\d{4}-1$/.test(result.id) ? 'success' : `took ${result.id}`
  if (effects > 1) return `done ${effects} times`
  return effects === 1 ? 'done, refused' : 'not done, refused'
}

/** Programs take the longest, so that they begin. */
const all = [...programs, ...sdks, ...libraries]
const TRIES = 3
/** A busy machine may need more of them than the two that matter. */
const IMPATIENT_TRIES = 200
const PATIENT_MS = 60_000
const IMPATIENT_MS = 2_000
/** Clients at once: more would only wait for each other. */
const LANES = 24
let cells = 0

async function openSetting(context: TestContext, setting: Setting, work: (run: RunCell) => Promise<void>) {
  const faultsOf = new Map<string, Fault>()
  /** Commands whose clients try no more. */
  const over = new Set<string>()
  const faultOf = (cell: string) => faultsOf.get(cell) ?? '429'
  const service = await openFaulty(context, {
    manners: setting.manners,
    faultOf,
    untilImpatient: async (cell) =>
      void (await until('its client tries again', () => hop.tries(cell) > 1 || over.has(cell))),
  })
  const world = await openGateway(context, service.url, [setting.rule])
  const hop = await openHop(context, world.port, (cell) => faultOf(cell) === 'lost response')
  await work(async (client, fault) => {
    const cell = `cell${String(++cells).padStart(4, '0')}`
    faultsOf.set(cell, fault)
    if (client.waits === true) over.add(cell)
    const slow = fault === 'slow'
    const [timeoutMs, tries] = slow ? [IMPATIENT_MS, IMPATIENT_TRIES] : [PATIENT_MS, TRIES]
    const url = `http://127.0.0.1:${hop.port}`
    const result = await client
      .send({ cell, key: `key-${cell}`, port: hop.port, url, timeoutMs, tries })
      .then((id) => ({ id }))
      .catch((error: unknown) => ({ error: String(error) }))
    over.add(cell)
    const { effects } = service.seen(cell)
    return { client, fault, setting, effects, tries: hop.tries(cell), result }
  })
}

type RunCell = (client: Client, fault: Fault) => Promise<Cell>

/** All of them, some at once. */
async function inLanes<T>(work: readonly (() => Promise<T>)[]): Promise<readonly T[]> {
  const results: T[] = []
  const waiting = [...work]
  const lane = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) results.push(await next())
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  return results
}

test('unchanged clients, whatever befalls their first try: one effect, and its answer where there is one', async (context) => {
  const missing = new Map<string, string>()
  for (const client of all) {
    const why = await whyMissing(client)
    if (why !== null) missing.set(client.name, why)
  }
  for (const why of missing.values()) context.diagnostic(`SKIPPED: ${why}`)
  const clients = all.filter(({ name }) => !missing.has(name))

  for (const setting of settings) {
    await openSetting(context, setting, async (run) => {
      const results = await inLanes(clients.flatMap((client) => faults.map((fault) => () => run(client, fault))))
      for (const line of tableOf(setting, clients, results)) context.diagnostic(line)
      const wrong = results.flatMap((cell) => {
        const [wanted, got] = [expected(cell), outcomeOf(cell)]
        const right = wanted === 'either' ? got === 'success' || got === 'not done, refused' : got === wanted
        return right
          ? []
          : [`${cell.client.name}, ${cell.fault}: ${got} instead of ${wanted}: ${JSON.stringify(cell.result)}`]
      })
      assert.deepEqual(wrong, [], setting.name)
    })
  }
})

const SIGNS: Readonly<Record<string, string>> = { success: 'ok', 'done, refused': '1!', 'not done, refused': '0!' }

/** `ok`: its answer after one effect. `1!`, `0!`: refused, after one effect or none. And how many tries it took. */
function tableOf({ name }: Setting, clients: readonly Client[], results: readonly Cell[]): readonly string[] {
  const widest = Math.max(...clients.map((client) => client.name.length))
  const heads = ['lost', 'reset', 'cut', '409', '429', '500', '503+RA', '503', 'slow']
  const line = (first: string, rest: readonly string[]) =>
    `${first.padEnd(widest)} ${rest.map((each) => each.padEnd(8)).join('')}`
  const row = (client: Client) =>
    faults.map((fault) => {
      const cell = results.find((each) => each.client === client && each.fault === fault)
      return cell === undefined ? '' : `${SIGNS[outcomeOf(cell)] ?? '??'} in ${cell.tries}`
    })
  return [`The ${name} gateway`, line('', heads), ...clients.map((client) => line(client.name, row(client)))]
}

test('a client that signs every attempt anew gets a clear error, and nothing is done twice', async (context) => {
  const client = sdks.find(({ resigns }) => resigns === true)
  assert.ok(client !== undefined)
  const [setting] = settings
  assert.ok(setting !== undefined)
  await openSetting(context, setting, async (run) => {
    const { effects, result } = await run(client, 'lost response')
    assert.equal(effects, 1)
    assert.match(JSON.stringify(result), /BadStatus: 409/)
  })
})

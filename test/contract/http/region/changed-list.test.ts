import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import type { Store } from 'onceonly'
import { createLedger, OnceError } from 'onceonly'
import type { RouteDefinition } from 'onceonly/http'
import { memoryStore } from 'onceonly/memory'
import { createProtect, operationStatus } from 'onceonly/node'
import type { RegionRouterOptions } from 'onceonly/region'
import { createRegionRouter } from 'onceonly/region'
import { sqliteStore } from 'onceonly/sqlite'
import { recordIdOf } from '../../../../src/ledger/core/identity.ts'
import { ask } from '../../../support/gateway/ask.ts'
import { freePort, temporaryFolder } from '../../../support/gateway/process.ts'

const secret = 'a secret of some regions, long enough'
const before = ['eu', 'us'] as const
const now = ['eu', 'us', 'ap'] as const
type Name = (typeof now)[number]
/** What else a route has, and what its handler answers beside a body. */
interface Shape {
  readonly rules?: Pick<RouteDefinition<unknown>, 'authorize'>
  readonly headers?: Readonly<Record<string, string>>
}
type Lists = Pick<RegionRouterOptions, 'regions' | 'previous'>

const identityOf = (key: string) => ({ tenant: 'acme', caller: 'ann', operation: 'order', key })
const list = (names: readonly Name[], ports: Readonly<Record<Name, number>>) =>
  Object.fromEntries(names.map((name) => [name, `http://127.0.0.1:${ports[name]}`]))

/** Three regions with a store each, whose processes have the list that the test gives them. */
async function openRegions(
  context: TestContext,
  effect: 'external' | 'transaction',
  { rules = {}, headers = {} }: Shape = {},
) {
  const ports: Record<Name, number> = { eu: await freePort(), us: await freePort(), ap: await freePort() }
  const folder = await temporaryFolder(context)
  const stores = new Map<Name, Store>()
  const came: Name[] = []
  const ran: { readonly at: Name; readonly key: string }[] = []
  const storeOf = (name: Name): Store => {
    const store =
      stores.get(name) ?? (effect === 'transaction' ? sqliteStore(join(folder, `${name}.db`)) : memoryStore())
    stores.set(name, store)
    return store
  }

  /** A process of a region. The second one of a region has a port of its own, and the same store. */
  async function start(self: Name, lists: Lists, { port = ports[self], around = (store: Store) => store } = {}) {
    const region = createRegionRouter({ self, secret, ...lists })
    const ledger = createLedger({ store: around(storeOf(self)), background: false })
    const who = () => ({ tenant: 'acme', caller: 'ann' })
    const route = { name: 'order', effect, ...rules } as const
    const listener = createProtect({ ledger, who, region })(route, (request, response) => {
      ran.push({ at: self, key: String(request.headers['idempotency-key']) })
      response.writeHead(201, headers).end(`made at ${self}`)
    })
    const status = operationStatus({ ledger, who, region })
    const server = createServer((request, response) => {
      came.push(self)
      void (request.method === 'GET' ? status : listener)(request, response)
    })
    await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve))
    let isStopped = false
    const stop = async () => {
      if (isStopped) return
      isStopped = true
      region.stop()
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
      await ledger.stop()
    }
    context.after(stop)
    return { region, stop, get: ledger.get }
  }

  context.after(async () => {
    for (const store of stores.values()) await store.stop()
  })
  const old: Lists = { regions: list(before, ports) }
  const changed: Lists = { regions: list(now, ports), previous: list(before, ports) }
  return { ports, ran, came, start, old, changed }
}

/** Keys that were at home in one region before, and are in `ap` now. */
function movedKeys(lists: Lists, from: Name, count: number): string[] {
  using region = createRegionRouter({ self: 'ap', secret, ...lists })
  const keys = Array.from({ length: 2_000 }, (_, at) => `key-${at}`)
  const moved = keys.filter((key) => {
    const id = recordIdOf(identityOf(key))
    return region.homeOf(id) === 'ap' && region.formerHomeOf(id) === from
  })
  assert.ok(moved.length >= count)
  return moved.slice(0, count)
}

for (const effect of ['external', 'transaction'] as const) {
  test(`a new region: old homes answer for their records, and hand over the keys without one (${effect})`, async (context) => {
    const { ports, ran, start, old, changed } = await openRegions(context, effect)
    const first = [await start('eu', old), await start('us', old)]
    const [known = '', fresh = ''] = movedKeys(changed, 'us', 2)
    const answer = await ask(ports.eu, { key: known })
    assert.deepEqual([answer.status, answer.body], [201, 'made at us'])
    for (const { stop } of first) await stop()
    for (const name of now) await start(name, changed)

    for (const port of [ports.ap, ports.eu, ports.us]) {
      const retry = await ask(port, { key: known })
      assert.deepEqual([retry.status, retry.body, retry.replayed], [201, 'made at us', true])
      const wrong = await ask(port, { key: known, body: '{"amount":2}' })
      assert.equal(wrong.problem, 'idempotency-key-reused')
    }
    assert.equal(ran.length, 1)

    // At once at all of them: the new home runs it, once.
    const answers = await Promise.all([ports.ap, ports.eu, ports.us, ports.ap].map((port) => ask(port, { key: fresh })))
    for (const { status, body } of answers) assert.deepEqual([status, body], [201, 'made at ap'])
    assert.deepEqual(ran.slice(1), [{ at: 'ap', key: fresh }])

    // The status is where the record is, and what was handed over is not shown.
    for (const [key, state] of [
      [known, 200],
      [fresh, 200],
    ] as const) {
      const path = `/operations/${recordIdOf(identityOf(key))}`
      for (const port of [ports.eu, ports.us, ports.ap]) {
        const look = await ask(port, { method: 'GET', path, key: null })
        assert.equal(look.status, state, `${key} at ${port}`)
        assert.match(look.body, /"status":"succeeded"/)
      }
    }
  })

  test(`while processes with both lists run, no key is taken twice (${effect})`, async (context) => {
    const { ports, ran, start, old, changed } = await openRegions(context, effect)
    await start('us', changed)
    await start('ap', changed)
    await start('eu', changed)
    const late = await freePort()
    await start('us', old, { port: late })
    const keys = movedKeys(changed, 'us', 40)
    // Some first at the new home, some first at a process that knows of none.
    const answers = await Promise.all(
      keys.map(async (key, at) => {
        const [begins, ...others] = at % 2 === 0 ? [ports.ap, late, ports.eu] : [late, ports.ap, ports.eu]
        const first = at % 4 < 2 ? [await ask(begins, { key })] : [ask(begins, { key })]
        return Promise.all([...first, ...others.map((port) => ask(port, { key }))])
      }),
    ).then((all) => all.flat())
    for (const { status, problem } of answers)
      assert.ok(status === 201 || problem === 'home-unreachable', String(status))
    for (const key of keys) {
      const last = await ask(ports.ap, { key })
      assert.equal(last.status, 201)
      assert.equal(ran.filter((each) => each.key === key).length, 1, key)
    }
    assert.deepEqual(new Set(ran.map(({ at }) => at)), new Set(['us', 'ap']), 'each of them was first somewhere')
  })
}

test('while the former home is away, the new one takes no key that may have a record there', async (context) => {
  const { ports, ran, start, changed } = await openRegions(context, 'external')
  await start('ap', changed)
  const us = await start('us', changed)
  const [known = '', fresh = ''] = movedKeys(changed, 'us', 2)
  assert.equal((await ask(ports.ap, { key: known })).body, 'made at ap')
  await us.stop()
  const refused = await ask(ports.ap, { key: fresh })
  assert.deepEqual([refused.status, refused.problem], [503, 'home-unreachable'])
  assert.equal((await ask(ports.ap, { key: known })).replayed, true, 'what it has taken over is its own')
  assert.equal(ran.length, 1)
})

/** A store that takes no claims until it comes back. */
function createAway() {
  let isAway = true
  const around = (store: Store): Store => ({
    ...store,
    claims: {
      ...store.claims,
      apply: (...given) => (isAway ? Promise.reject(new Error('away')) : store.claims.apply(...given)),
    },
  })
  return { around, comeBack: () => void (isAway = false) }
}

test('a key that was handed over is taken after a crash of its new home', async (context) => {
  const { ports, ran, start, changed } = await openRegions(context, 'external')
  const us = await start('us', changed)
  const { around, comeBack } = createAway()
  await start('ap', changed, { around })
  const [key = ''] = movedKeys(changed, 'us', 1)
  assert.ok((await ask(ports.ap, { key })).status >= 500)
  assert.equal((await us.get(identityOf(key)))?.record.state, 'failed_terminal')
  const id = recordIdOf(identityOf(key))
  assert.equal((await ask(ports.us, { method: 'GET', path: `/operations/${id}`, key: null })).status, 404)
  comeBack()
  for (const replayed of [false, true]) {
    const answer = await ask(ports.ap, { key })
    assert.deepEqual([answer.body, answer.replayed], ['made at ap', replayed])
  }
  assert.equal(ran.length, 1)
})

test('a region that leaves answers for its records until they are gone', async (context) => {
  const { ports, ran, start } = await openRegions(context, 'external')
  const lists = { regions: list(['eu', 'us'], ports), previous: list(now, ports) }
  const first = await start('ap', { regions: list(now, ports) })
  using map = createRegionRouter({ self: 'eu', secret, regions: list(now, ports) })
  const keys = Array.from({ length: 200 }, (_, at) => `left-${at}`).filter((key) => map.home(identityOf(key)) === 'ap')
  const [known = '', fresh = ''] = keys
  assert.equal((await ask(ports.ap, { key: known })).body, 'made at ap')
  await first.stop()
  for (const name of now) await start(name, lists)
  for (const port of [ports.ap, ports.eu, ports.us]) {
    const retry = await ask(port, { key: known })
    assert.deepEqual([retry.body, retry.replayed], ['made at ap', true])
    assert.match((await ask(port, { key: fresh })).body, /made at (eu|us)/)
  }
  assert.equal(ran.length, 2)
})

test('an answer of a handler does not pass for a key that was handed over', async (context) => {
  const headers = { 'onceonly-handed-over': 'ap' }
  const { ports, ran, start, old, changed } = await openRegions(context, 'external', { headers })
  await start('us', old)
  await start('ap', changed)
  const [key = ''] = movedKeys(changed, 'us', 1)
  assert.equal((await ask(ports.ap, { key })).body, 'made at us')
  assert.equal((await ask(ports.ap, { key })).body, 'made at us')
  assert.deepEqual(ran, [{ at: 'us', key }])
})

test('a region that may not show outcomes of now says that it has handed a key over', async (context) => {
  const rules = { authorize: () => false }
  const { ports, ran, start, changed } = await openRegions(context, 'external', { rules })
  await start('us', changed)
  const { around, comeBack } = createAway()
  await start('ap', changed, { around })
  const [key = ''] = movedKeys(changed, 'us', 1)
  assert.ok((await ask(ports.ap, { key })).status >= 500)
  comeBack()
  assert.equal((await ask(ports.ap, { key })).body, 'made at ap')
  assert.equal((await ask(ports.ap, { key })).problem, 'not-authorized')
  assert.deepEqual(ran, [{ at: 'ap', key }])
})

test('a change that is taken back sends no request round in circles', async (context) => {
  const { ports, ran, came, start, old, changed } = await openRegions(context, 'external')
  await start('us', { regions: old.regions, previous: changed.regions })
  await start('ap', changed)
  const [key = ''] = movedKeys(changed, 'us', 1)
  for (const [port, way] of [
    [ports.ap, ['ap', 'us']],
    [ports.us, ['us', 'ap']],
  ] as const) {
    // Also where the client says that its request was sent by a region.
    for (const headers of [{}, { 'onceonly-former-home': 'us' }]) {
      came.length = 0
      const answer = await ask(port, { key, headers })
      assert.deepEqual([answer.status, answer.problem], [503, 'home-unreachable'])
      assert.deepEqual(came, way)
    }
  }
  assert.deepEqual(ran, [])
})

test('a new home whose store is down says so', async (context) => {
  const { ports, ran, start, changed } = await openRegions(context, 'external')
  const down = () => Promise.reject(new OnceError('store_unavailable', 'The store is down.'))
  await start('ap', changed, { around: (store) => ({ ...store, queries: { ...store.queries, get: down } }) })
  const [key = ''] = movedKeys(changed, 'us', 1)
  const answer = await ask(ports.ap, { key })
  assert.deepEqual([answer.status, answer.problem], [503, 'store-unavailable'])
  assert.deepEqual(ran, [])
})

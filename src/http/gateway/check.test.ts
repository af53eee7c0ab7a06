import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../ledger/core/errors.ts'
import { checkGatewayConfig } from './check.ts'
import { compilePattern } from './pattern.ts'

const rule = { method: 'POST', path: '/a', caller: 'shared' }
const token = 'sixteen-letters-or-more'
const upstream = 'http://127.0.0.1:3000'

/** Every fault as `path what`, shortened to its first words. */
function faultsOf(config: unknown): string[] {
  try {
    checkGatewayConfig(config)
    return []
  } catch (error) {
    assert.ok(isOnceError(error, 'bad_option'))
    return (error.details['faults'] as { path: string; what: string }[]).map(({ path, what }) => `${path} ${what}`)
  }
}

test('a good configuration is taken as it is', () => {
  const config = {
    upstream,
    upstreams: { other: 'https://x.example/base' },
    routes: [
      rule,
      { ...rule, method: ['PUT', 'PATCH'], caller: { claim: 'sub' }, tenant: { header: 'x-org' }, upstream: 'other' },
      { ...rule, key: 'optional', content: { withinMs: 1, onStoreDown: 'closed' }, whileRunning: { waitMs: 0 } },
      { ...rule, content: { scope: 'tenant' }, replay: 'trusted' },
      { ...rule, content: { scope: 'tenant' }, authorize: { path: '/me' } },
      { ...rule, content: { scope: 'caller' } },
    ],
    timeouts: { answerMs: 10 },
  }
  assert.equal(checkGatewayConfig(config), config)
})

test('every fault is named by its path, and all of them at once', () => {
  for (const [config, ...wanted] of [
    [null, ' is not an object'],
    [{ upstrem: upstream }, 'upstrem is not a setting: did you mean `upstream`?'],
    [{}, 'upstream is missing'],
    [{ upstream: 'ftp://x', zz: 1 }, 'upstream is not an http', 'zz is not a setting'],
    [{ upstream: 'http://user:pass@x' }, 'upstream holds a credential'],
    [{ upstream, routes: {} }, 'routes is not a list'],
    [{ upstream, routes: [{}] }, 'routes[0].method is missing', 'routes[0].path is missing'],
    [{ upstream, routes: [{ ...rule, method: 'GET' }] }, 'routes[0].method changes nothing'],
    [{ upstream, routes: [{ ...rule, method: ['POST', 'get'] }] }, 'routes[0].method[1] is not spelled GET'],
    [{ upstream, routes: [rule, { ...rule, path: 'a' }] }, 'routes[1].path does not begin'],
    [{ upstream, routes: [{ ...rule, path: '/*/b' }] }, 'routes[0].path has a `*` before'],
    [{ upstream, routes: [{ ...rule, path: '/a%zz' }] }, 'routes[0].path cannot be a path'],
    [{ upstream, routes: [{ ...rule, caller: 'me' }] }, "routes[0].caller is neither 'shared'"],
    [{ upstream, routes: [{ ...rule, caller: { header: 'Authorization' } }] }, 'routes[0].caller.header changes when'],
    [{ upstream, routes: [{ ...rule, caller: { header: 'cookie' } }] }, 'routes[0].caller.header holds more'],
    [{ upstream, routes: [{ ...rule, notDone: [200] }] }, 'routes[0].notDone[0] is not a whole'],
    [{ upstream, routes: [{ ...rule, caller: { header: 'a b' } }] }, 'routes[0].caller.header is not the name'],
    [{ upstream, routes: [{ ...rule, timeouts: { answerMs: -1 } }] }, 'routes[0].timeouts.answerMs is not a whole'],
    [{ upstream, routes: [{ ...rule, upstream: 'x' }] }, 'routes[0].upstream is not in'],
    [{ upstream, routes: [{ ...rule, key: 'required', content: {} }] }, 'routes[0].content is for routes'],
    [{ upstream, routes: [{ ...rule, content: { scope: 'tenant' } }] }, 'routes[0].content.scope lets callers share'],
    [
      { upstream, routes: [{ ...rule, content: { scope: 'tenant' }, replay: 'same-credential' }] },
      'routes[0].content.scope lets callers share',
    ],
    [{ upstream, routes: [{ ...rule, replay: 'trusted', authorize: { path: '/me' } }] }, 'routes[0].replay says who'],
    [{ upstream, routes: [{ ...rule, keepHeaders: ['Set-Cookie'] }] }, 'routes[0].keepHeaders[0] belongs to one'],
    [{ upstream, console: {} }, 'console.port is missing'],
    [{ upstream, console: { port: 1, operatorToken: 'short' } }, 'console.operatorToken is not a text of at least'],
    [{ upstream, console: { port: 1, host: '0.0.0.0' } }, 'console.host is not this machine alone'],
    [
      { upstream, console: { port: 1, operatorToken: token, viewerToken: token } },
      "console.viewerToken is the operator's",
    ],
    [{ upstream, region: { self: 'a', regions: {}, secret: 'x' } }, 'region.secret is not', 'region.self is none'],
  ] as const) {
    const faults = faultsOf(config)
    assert.equal(faults.length, wanted.length, faults.join('; '))
    for (const [at, start] of wanted.entries()) assert.ok(faults[at]?.startsWith(start), `${faults[at]} : ${start}`)
  }
})

test('patterns fit whole paths, in the one spelling in which paths are compared', () => {
  const fits = (pattern: string, ...paths: string[]) => paths.map((path) => compilePattern(pattern)(path))
  assert.deepEqual(fits('/a/:id', '/a/1', '/a/', '/a', '/a/1/2', '/a/%2F'), [true, false, false, false, true])
  assert.deepEqual(fits('/a/*', '/a', '/a/', '/a/b/c', '/ab'), [true, true, true, false])
  assert.deepEqual(fits('/*', '/', '/x/y'), [true, true])
  assert.deepEqual(fits('/a.b', '/a.b', '/axb'), [true, false])
  assert.deepEqual(fits('/%7euser', '/~user'), [true])
  assert.deepEqual(fits('/things:batch', '/things:batch', '/thingsx'), [true, false])
})

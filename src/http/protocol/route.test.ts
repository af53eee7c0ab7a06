import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { RouteDefinition } from './route.ts'
import { checkRoute } from './route.ts'

const good: RouteDefinition<never> = { effect: 'external' }
const guard = { send: () => Promise.reject(new Error('never asked')), duplicate: () => answer() }
const answer = () => ({ status: 200, headers: [], body: new Uint8Array() })

test('routes that can work are accepted', () => {
  checkRoute(good)
  checkRoute({ ...good, keep: 'pointer', rebuild: answer, sensitive: true, authorize: () => true })
  checkRoute({ ...good, maxAnswerBytes: 0, keepHeaders: ['X-Thing-Id', 'Allow'] })
  checkRoute({ effect: 'transaction', key: 'guarded', guard: 'handler' })
  checkRoute({ effect: 'external', key: 'guarded', guard })
  checkRoute({ ...good, name: 'thing', probe: async () => ({ answer: 'prevented' }) })
})

test('a guarded route without its guard does not compile', () => {
  // @ts-expect-error -- the guard is missing.
  const without: RouteDefinition<never> = { effect: 'external', key: 'guarded' }
  // @ts-expect-error -- a lock holds no transaction.
  const inside: RouteDefinition<never> = { effect: 'transaction', key: 'guarded', guard }
  // @ts-expect-error -- the guard would not be called.
  const unasked: RouteDefinition<never> = { effect: 'external', key: 'optional', guard: 'handler' }
  for (const route of [without, inside, unasked]) assert.throws(() => checkRoute(route))
})

const bad: readonly [option: string, route: object][] = [
  ['effect', {}],
  ['effect', { effect: 'maybe' }],
  ['key', { ...good, key: 'sometimes' }],
  ['guard', { ...good, key: 'guarded' }],
  ['guard', { ...good, key: 'optional', guard: 'handler' }],
  ['guard', { effect: 'transaction', key: 'guarded', guard }],
  ['rebuild', { ...good, keep: 'pointer' }],
  ['sensitive', { ...good, sensitive: true, authorize: () => true }],
  ['authorize', { ...good, sensitive: true, keep: 'outcome' }],
  ['name', { ...good, probe: async () => ({ answer: 'prevented' }) }],
  ['maxAnswerBytes', { ...good, maxAnswerBytes: 2_000_000 }],
  ['maxAnswerBytes', { ...good, maxAnswerBytes: -1 }],
  ...['Set-Cookie', 'Date', 'Connection', 'X-RateLimit-Remaining', 'RateLimit', 'traceparent', 'X-Request-Id'].map(
    (name): [string, object] => ['keepHeaders', { ...good, keepHeaders: [name] }],
  ),
]

for (const [option, route] of bad) {
  test(`${option} is refused in ${JSON.stringify(route)}`, () => {
    assert.throws(
      () => checkRoute(route as RouteDefinition<never>),
      (error) => isOnceError(error, 'bad_option') && error.details['option'] === option,
    )
  })
}

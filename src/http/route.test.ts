import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../core/errors.ts'
import type { RouteDefinition } from './route.ts'
import { checkRoute } from './route.ts'

const good: RouteDefinition<never> = { effect: 'external' }
const answer = () => ({ status: 200, headers: [], body: new Uint8Array() })

test('routes that can work are accepted', () => {
  checkRoute(good)
  checkRoute({ ...good, keep: 'pointer', rebuild: answer, sensitive: true, authorize: () => true })
  checkRoute({ ...good, maxAnswerBytes: 0, keepHeaders: ['X-Thing-Id', 'Allow'] })
  checkRoute({ ...good, name: 'thing', probe: async () => ({ answer: 'prevented' }) })
})

const bad: readonly [option: string, route: object][] = [
  ['effect', {}],
  ['effect', { effect: 'maybe' }],
  ['key', { ...good, key: 'sometimes' }],
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

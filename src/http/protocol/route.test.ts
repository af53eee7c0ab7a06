import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { RouteDefinition } from './route.ts'
import { checkRoute } from './route.ts'

const good: RouteDefinition<never> = { effect: 'external' }
const answer = () => ({ status: 200, headers: [], body: new Uint8Array() })

test('routes that can work are accepted', () => {
  checkRoute(good)
  checkRoute({ ...good, keep: 'pointer', rebuild: answer, sensitive: true, authorize: () => true })
  checkRoute({ ...good, maxAnswerBytes: 0, keepHeaders: ['X-Thing-Id', 'Allow'] })
  checkRoute({ effect: 'transaction', key: 'optional', content: { onStoreDown: 'closed', scope: 'caller' } })
  checkRoute({
    effect: 'external',
    key: 'optional',
    content: { of: ({ to }) => [to], withinMs: 1, waitMs: 0, decideMs: 1 },
  })
  checkRoute({ ...good, name: 'thing', probe: async () => ({ answer: 'prevented' }) })
})

test('a content beside a required key does not compile', () => {
  // @ts-expect-error -- every request has a key.
  const required: RouteDefinition<never> = { effect: 'external', key: 'required', content: {} }
  // @ts-expect-error -- a key is required where nothing is said about it.
  const unsaid: RouteDefinition<never> = { effect: 'external', content: {} }
  for (const route of [required, unsaid]) assert.throws(() => checkRoute(route))
})

const optional = { ...good, key: 'optional' }

const bad: readonly [option: string, route: object][] = [
  ['effect', {}],
  ['effect', { effect: 'maybe' }],
  ['key', { ...good, key: 'sometimes' }],
  ['key', { ...good, key: 'guarded' }],
  ['content', { ...good, content: {} }],
  ['content', { ...optional, content: 'body' }],
  ['content', { ...optional, content: [] }],
  ['window', { ...optional, content: { window: 5 } }],
  ['content.of', { ...optional, content: { of: 'body' } }],
  ['content.withinMs', { ...optional, content: { withinMs: 0 } }],
  ['content.scope', { ...optional, content: { scope: 'world' } }],
  ...[-1, 0.5, 3e9, '5', true, null].map((waitMs): [string, object] => [
    'content.waitMs',
    { ...optional, content: { waitMs } },
  ]),
  ['content.onStoreDown', { ...optional, content: { onStoreDown: 'maybe' } }],
  ['content.onStoreDown', { effect: 'transaction', key: 'optional', content: { onStoreDown: 'open' } }],
  ...[0, 0.5, 3e9, Number.POSITIVE_INFINITY, '250', true].map((decideMs): [string, object] => [
    'content.decideMs',
    { ...optional, content: { decideMs } },
  ]),
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

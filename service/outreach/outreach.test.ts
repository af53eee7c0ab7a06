import assert from 'node:assert/strict'
import { test } from 'node:test'
import { holds } from './condition.ts'
import { startWalk } from './flow.ts'
import type { Lead, Scope } from './sequence.ts'
import type { Condition, Step } from './step.ts'
import { render } from './template.ts'

const lead: Lead = {
  id: 'lead_1',
  phone: null,
  email: 'a@example.com',
  ghlContactId: '{{lead.email}}',
  ghlLocationId: null,
  hsContactId: null,
  hsPortalId: null,
  createdAt: '2026-01-01T00:00:00.000Z',
}
const scope: Scope = { lead, results: { hook: { status: 200, body: { tags: ['vip'], score: 7 } } } }

test('values are put in once, and never read as templates themselves', () => {
  assert.equal(render('{{lead.email}}, {{ lead.id }}', scope), 'a@example.com, lead_1')
  assert.equal(render('{{lead.ghlContactId}}', scope), '{{lead.email}}')
  assert.equal(render('<{{lead.phone}}> <{{results.none.x}}>', scope), '<> <>')
  assert.equal(render('{{results.hook.status}} {{results.hook.body.tags}}', scope), '200 ["vip"]')
  assert.equal(render('{"a":{"b":"{{lead.id}}"}}', scope), '{"a":{"b":"lead_1"}}')
  assert.equal(render('$& $1 {{lead.email}}', { ...scope, lead: { ...lead, email: '$&' } }), '$& $1 $&')
  assert.equal(render('{{lead.toString}}{{results.constructor.name}}', scope), '')
})

test('conditions compare what is there', () => {
  const cases: readonly (readonly [Condition, boolean])[] = [
    [{ path: 'lead.phone', op: 'exists' }, false],
    [{ path: 'lead.email', op: 'exists' }, true],
    [{ path: 'results.none.status', op: 'exists' }, false],
    [{ path: 'lead.email', op: 'eq', value: 'a@example.com' }, true],
    [{ path: 'lead.phone', op: 'eq', value: null }, true],
    [{ path: 'lead.phone', op: 'ne', value: 'x' }, true],
    [{ path: 'results.hook.status', op: 'eq', value: '200' }, false],
    [{ path: 'results.hook.body.score', op: 'gt', value: 6 }, true],
    [{ path: 'results.hook.body.score', op: 'gt', value: 7 }, false],
    [{ path: 'results.hook.body.score', op: 'lt', value: 8 }, true],
    [{ path: 'results.hook.body.score', op: 'lt', value: '8' }, false],
    [{ path: 'lead.createdAt', op: 'lt', value: '2026-02-01' }, true],
    [{ path: 'lead.phone', op: 'lt', value: 'x' }, false],
    [{ path: 'lead.email', op: 'contains', value: '@example.' }, true],
    [{ path: 'results.hook.body.tags', op: 'contains', value: 'vip' }, true],
    [{ path: 'lead.phone', op: 'contains', value: '' }, false],
  ]
  for (const [condition, expected] of cases) assert.equal(holds(condition, scope), expected, JSON.stringify(condition))
})

const at = (id: string, next?: string | null): Step => ({
  id,
  type: 'wait',
  ms: 0,
  ...(next === undefined ? {} : { next }),
})
const fork = (id: string, arms: { readonly then?: string | null; readonly else?: string | null }): Step => ({
  id,
  type: 'branch',
  when: { path: 'lead.phone', op: 'exists' },
  ...arms,
})

function pathOf(steps: readonly Step[], arm: 'then' | 'else'): string {
  const walk = startWalk(steps)
  const path: string[] = []
  for (let step = walk.step; step !== null; step = walk.step) {
    path.push(step.id)
    walk.pass(step.type === 'branch' ? arm : null)
  }
  return path.join(' ')
}

test('an arm that was not taken is passed over, and the ways meet again below', () => {
  const cases: readonly (readonly [readonly Step[], then: string, otherwise: string])[] = [
    [[fork('?', { then: 'a', else: 'b' }), at('a'), at('b'), at('c')], '? a c', '? b c'],
    [[fork('?', { then: 'a' }), at('a'), at('c')], '? a c', '? c'],
    [[fork('?', { else: 'a' }), at('a'), at('c')], '? c', '? a c'],
    [[fork('?', { then: null }), at('a')], '?', '? a'],
    [[fork('?', { then: 'c', else: 'a' }), at('a'), at('b'), at('c')], '? c', '? a b'],
    [[fork('?', { then: 'a', else: 'a' }), at('a')], '? a', '? a'],
    [[fork('?', { then: 'a', else: 'x' }), at('a'), at('b', 'z'), at('x'), at('y'), at('z')], '? a b z', '? x y z'],
    [[at('a', null), at('b')], 'a', 'a'],
    [[fork('?', { then: 'b' }), fork('!', { then: 'b' }), at('b'), at('c')], '? b c', '? ! c'],
  ]
  for (const [steps, then, otherwise] of cases) {
    assert.equal(pathOf(steps, 'then'), then)
    assert.equal(pathOf(steps, 'else'), otherwise)
  }
})

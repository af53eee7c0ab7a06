import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import type { Move, MoveTools } from './definition.ts'
import { event, ignore, timeout } from './definition.ts'
import { sagaLimits } from './limits.ts'
import { defineSaga, machineOf } from './machine.ts'
import { react } from './react.ts'

interface Data {
  readonly seen: string[]
}

const machine = machineOf(
  defineSaga({
    name: 'steps',
    events: { Go: event<null>({ correlate: () => 'x' }), Late: timeout<{ n: number }>() },
    states: ['A', 'B', 'Loop'],
    terminal: ['Z'],
    data: (): Data => ({ seen: [] }),
    table: {
      initial: { Go: ignore, Late: ignore },
      A: { Go: ignore, Late: ignore },
      B: { Go: ignore, Late: ignore },
      Loop: { Go: ignore, Late: ignore },
    },
    onEnter: {
      B: {
        to: ['Z'],
        handle(data, tools) {
          data.seen.push(`entered ${tools.state}`)
          tools.transitionTo('Z')
        },
      },
      Z: (data, tools) => void data.seen.push(`entered ${tools.state}`),
      Loop: { to: ['Loop'], handle: (_data, tools) => tools.transitionTo('Loop') },
    },
  }),
)

const tx: SqlTx = { query: () => Promise.reject(new Error('no database here')), inSavepoint: (work) => work() }
const ground = { now: 5, tx, effectKey: 'k', derive: (name: string) => `k.${name}` }

function run(state: string, to: string[], handle: (tools: MoveTools<string>) => void | Promise<void>) {
  const cell: Move<unknown, unknown, string> = { to, handle: (_data, _event, tools) => handle(tools) }
  const data: Data = { seen: [] }
  const subject = { id: 'i1', state, data }
  return react(machine, subject, { name: 'Go', body: null }, cell, ground).then((reaction) => ({ reaction, data }))
}

const misused = (why: RegExp) => (error: unknown) => isOnceError(error, 'saga_misused') && why.test(error.message)

test('every state on the way is entered, in order', async () => {
  const { reaction, data } = await run('A', ['B'], (tools) => tools.transitionTo('B'))
  assert.deepEqual(reaction.path, ['B', 'Z'])
  assert.deepEqual(data.seen, ['entered B', 'entered Z'])
})

test('messages keep the order of their instance by default', async () => {
  const { reaction } = await run('A', ['B'], (tools) => {
    tools.send('one', 1)
    tools.publish('two', 2, { key: null, headers: { h: 'v' } })
  })
  assert.deepEqual(reaction.emitted, [
    { how: 'sent', topic: 'one', key: 'i1', body: 1, headers: {} },
    { how: 'published', topic: 'two', key: null, body: 2, headers: { h: 'v' } },
  ])
})

test('of several words about one timeout the last one counts', async () => {
  const { reaction } = await run('A', ['B'], (tools) => {
    const schedule = tools.schedule as (
      name: string,
      body: unknown,
      options: { afterMs: number; name?: string },
    ) => void
    schedule('Late', { n: 1 }, { afterMs: 1 })
    schedule('Late', { n: 2 }, { afterMs: 2 })
    schedule('Late', { n: 3 }, { afterMs: 3, name: 'other' })
    tools.unschedule('other')
  })
  assert.deepEqual(
    [...reaction.timeouts],
    [
      ['Late', { name: 'Late', event: 'Late', afterMs: 2, body: '{"n":2}' }],
      ['other', null],
    ],
  )
})

test('what the table does not show is refused', async () => {
  await assert.rejects(
    run('A', ['B'], (tools) => tools.transitionTo('Z')),
    misused(/went from A to Z, which the table does not show/),
  )
  await assert.rejects(
    run('A', ['B'], (tools) => {
      tools.transitionTo('B')
      tools.transitionTo('B')
    }),
    misused(/went to B and then to B in one handler/),
  )
  await assert.rejects(
    run('initial', ['A'], () => {}),
    misused(/Go made no transition, so that no instance begins/),
  )
  await assert.rejects(
    run('A', ['Loop'], (tools) => tools.transitionTo('Loop')),
    misused(/entered 16 states and found no rest/),
  )
})

test('timeouts that could never fire as meant are refused', async () => {
  const schedule = (name: string, afterMs: number) =>
    run('A', ['B'], (tools) => (tools.schedule as (...given: unknown[]) => void)(name, null, { afterMs }))
  await assert.rejects(schedule('Go', 1), misused(/scheduled Go, which is no timeout/))
  for (const afterMs of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    await assert.rejects(schedule('Late', afterMs), misused(/no whole number/))
  }
})

test('tools that outlive their handler refuse everything', async () => {
  let kept: MoveTools<string> | null = null
  await run('A', ['B'], (tools) => {
    kept = tools
  })
  const late = kept as unknown as MoveTools<string>
  for (const use of [() => late.send('x', 1), () => late.transitionTo('B'), () => late.warn('x')]) {
    assert.throws(use, misused(/after its handler had ended/))
  }
})

test('one event has bounds', async () => {
  const many = (count: number) =>
    run('A', ['B'], (tools) => {
      for (let sent = 0; sent < count; sent++) tools.send('x', sent)
      for (let count = 0; count < 100; count++) tools.warn('w')
    })
  const { reaction } = await many(sagaLimits.messages)
  assert.deepEqual([reaction.emitted.length, reaction.warnings.length], [sagaLimits.messages, sagaLimits.warnings])
  await assert.rejects(many(sagaLimits.messages + 1), misused(/more messages than one event may/))
})

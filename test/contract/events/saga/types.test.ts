import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from 'onceonly'
import { defer, defineSaga, event, fault, ignore, timeout } from 'onceonly/saga'

/**
 * What the compiler refuses. Each expectation below is checked by `tsc`, which complains when one of them compiles; and
 * since types are gone at run time, `defineSaga` must refuse the same mistakes then.
 */

const events = {
  Opened: event<{ readonly id: string; readonly sum: number }>({ correlate: ({ id }) => id }),
  Closed: event<{ readonly id: string }>({ correlate: ({ id }) => id }),
  Expired: timeout(),
}
const base = {
  name: 'doors',
  events,
  states: ['Open'],
  terminal: ['Shut'],
  data: () => ({ sum: 0 }),
} as const

const row = { Opened: ignore, Closed: ignore, Expired: fault } as const

const refused = (define: () => unknown, why: RegExp) =>
  assert.throws(define, (error) => isOnceError(error, 'bad_option') && why.test(error.message))

test('a table that decides every pair compiles, and its handlers know their types', () => {
  const definition = defineSaga({
    ...base,
    table: {
      initial: {
        Opened: {
          to: ['Open'],
          handle(data, opened, tools) {
            data.sum += opened.sum
            tools.schedule('Expired', null, { afterMs: 5 })
            tools.transitionTo('Open')
          },
        },
        Closed: defer,
        Expired: fault,
      },
      Open: {
        Opened: (data, { sum }) => void (data.sum += sum),
        Closed: { to: ['Shut'], handle: (_data, _closed, tools) => tools.transitionTo('Shut') },
        Expired: ignore,
      },
    },
  })
  assert.equal(definition.name, 'doors')
})

test('a missing pair does not compile', () => {
  refused(
    () =>
      defineSaga({
        ...base,
        table: {
          initial: row,
          // @ts-expect-error -- `Expired` is not decided in `Open`.
          Open: { Opened: ignore, Closed: ignore },
        },
      }),
    /does not decide Expired in Open/,
  )
})

test('only a terminal state can mean a failure', () => {
  const table = { initial: row, Open: row }
  assert.deepEqual(defineSaga({ ...base, failed: ['Shut'], table }).failed, ['Shut'])
  // @ts-expect-error -- `Open` is not terminal.
  refused(() => defineSaga({ ...base, failed: ['Open'], table }), /has Open in `failed`, which is not in `terminal`/)
})

test('a missing state does not compile, nor does a missing beginning', () => {
  // @ts-expect-error -- `Open` has no row.
  refused(() => defineSaga({ ...base, table: { initial: row } }), /does not decide Opened in Open/)
  // @ts-expect-error -- `initial` has no row.
  refused(() => defineSaga({ ...base, table: { Open: row } }), /does not decide Opened in initial/)
})

test('events and states that do not exist do not compile', () => {
  refused(
    // @ts-expect-error -- `Broken` is no event.
    () => defineSaga({ ...base, table: { initial: row, Open: { ...row, Broken: ignore } as const } }),
    /decides Broken in Open, which is no event/,
  )
  refused(
    // @ts-expect-error -- `Ajar` is no state.
    () => defineSaga({ ...base, table: { initial: row, Open: row, Ajar: row } }),
    /row for Ajar, which is no state/,
  )
  refused(
    // @ts-expect-error -- a terminal state decides nothing: it ignores everything.
    () => defineSaga({ ...base, table: { initial: row, Open: row, Shut: row } }),
    /row for Shut, which is no state that can be left/,
  )
  refused(
    () =>
      defineSaga({
        ...base,
        // @ts-expect-error -- `Ajar` is no state to go to.
        table: { initial: row, Open: { ...row, Closed: { to: ['Ajar'], handle() {} } } },
      }),
    /goes to Ajar on Closed in Open/,
  )
})

test('a handler that names no target cannot leave its state, and nothing begins without one', () => {
  defineSaga({
    ...base,
    table: {
      initial: row,
      Open: {
        ...row,
        Closed(_data, _closed, tools) {
          // @ts-expect-error -- there is no `transitionTo` here: the diagram would not know of it.
          tools.transitionTo?.('Shut')
        },
      },
    },
  })
  refused(
    // @ts-expect-error -- without an instance there is no state to stay in.
    () => defineSaga({ ...base, table: { initial: { ...row, Opened: () => {} }, Open: row } }),
    /cannot stay initial on Opened/,
  )
})

test('only timeouts can be scheduled, with the body that they carry', () => {
  defineSaga({
    ...base,
    table: {
      initial: row,
      Open: {
        ...row,
        Opened(data, opened, tools) {
          // @ts-expect-error -- `Closed` comes from outside.
          tools.schedule('Closed', { id: opened.id }, { afterMs: 1 })
          // @ts-expect-error -- `Expired` carries nothing.
          tools.schedule('Expired', { id: opened.id }, { afterMs: 1 })
          // @ts-expect-error -- the data has no such member.
          data.total = 1
          // @ts-expect-error -- nor has the event.
          data.sum = opened.total
        },
      },
    },
  })
})

test('a terminal state cannot be left', () => {
  refused(
    () =>
      defineSaga({
        ...base,
        table: { initial: row, Open: row },
        // @ts-expect-error -- a terminal state has no transitions.
        onEnter: { Shut: { to: ['Open'], handle() {} } },
      }),
    /leaves its terminal state Shut/,
  )
})

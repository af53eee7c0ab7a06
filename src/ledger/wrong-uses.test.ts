import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { isOnceError } from './core/errors.ts'
import type { Ledger } from './ledger.ts'
import { createLedger } from './ledger.ts'
import type { MemoryTx } from './stores/memory/index.ts'
import { memoryStore } from './stores/memory/index.ts'

/** The likeliest mistakes, with the whole text that their author reads. */

function ledgerOf(context: TestContext): { readonly once: Ledger<MemoryTx>; readonly claims: string[] } {
  const claims: string[] = []
  const once = createLedger({ store: memoryStore(), background: false, on: ({ kind }) => void claims.push(kind) })
  context.after(() => once.stop())
  return { once, claims }
}

const asNever = (value: unknown) => value as never
const who = { tenant: 'acme', caller: 'shop', key: 'k' }
const never = () => assert.fail('the effect ran')

test('createLedger says what is wrong with its store and its options', () => {
  const given = (store: unknown) => () => createLedger({ store: asNever(store) })
  const choices =
    'Give one of postgresStore(pool), sqliteStore(path), mariadbStore(pool), redisStore(client) and memoryStore().'
  const mistakes: [() => unknown, string][] = [
    [given(undefined), `The \`store\` of createLedger is undefined. ${choices}`],
    [given({}), `The \`store\` of createLedger is an object. ${choices}`],
    [
      given('postgres://localhost/orders'),
      'The `store` of createLedger is a string. Make a store of it: sqliteStore(path) or postgresStore(pool).',
    ],
    [
      given({ query: () => {}, connect: () => {} }),
      'The `store` of createLedger is a database client. Make a store of it: postgresStore(pool).',
    ],
    [
      given({ operation: () => {} }),
      'The `store` of createLedger is a ledger. Give the store that the ledger was made with.',
    ],
    [
      () => createLedger({ stroe: memoryStore() } as never),
      'createLedger has no option `stroe`. Did you mean `store`?',
    ],
    [
      () => createLedger(asNever(undefined)),
      'createLedger takes its options as an object, { store }, not as undefined.',
    ],
  ]
  for (const [call, message] of mistakes) assert.throws(call, { code: 'bad_option', message })
})

test('an operation says what is wrong with its definition', async (context) => {
  const { once } = ledgerOf(context)
  const effects = "must be 'transaction', 'repeatable' or 'external': no default is right for everyone"
  const mistakes: [unknown, string][] = [
    [{ name: 'pay' }, `Operation option \`effect\` ${effects}.`],
    [{ name: 'pay', effect: 'external', leasMs: 5 }, '`operation` has no option `leasMs`. Did you mean `leaseMs`?'],
    [
      { name: 'pay', effect: 'external', leaseMs: 30 },
      'Operation option `leaseMs` is 30, below 500 ms; did you mean 30_000?',
    ],
    [
      { name: 'pay', effect: 'external', maxRunMs: 90 },
      'Operation option `maxRunMs` is 90, below 30000 ms; did you mean 90_000?',
    ],
    ['pay', '`operation` takes its options as an object, not as a string.'],
  ]
  for (const [definition, message] of mistakes) {
    assert.throws(() => once.operation(asNever(definition)), { code: 'bad_option', message })
  }
  once.operation({ name: 'pay', effect: 'external' })
  assert.throws(() => once.operation({ name: 'pay', effect: 'external' }), {
    code: 'bad_option',
    message:
      'Operation pay is declared twice. Declare it once, and share what `operation` returns; where hot reload declares it again, set `redeclare` in development.',
  })
  await once.stop()
  assert.throws(() => once.operation({ name: 'late', effect: 'external' }), {
    code: 'stopped',
    message: /^Operation late is declared after the ledger stopped\. /,
  })
})

test('with `redeclare` the last declaration of a name counts: modules are evaluated again under hot reload', async () => {
  await using once = createLedger({ store: memoryStore(), background: false, redeclare: true })
  const sell = (priceInCents: number) => {
    const operation = once.operation({ name: 'sell', effect: 'repeatable' })
    return (key: string) => operation.run({ ...who, key }, 'pen', () => priceInCents)
  }
  const [before, after] = [sell(100), sell(200)]
  assert.deepEqual([await before('a'), await after('b'), await after('a')], [100, 200, 100])
})

test('a call says what is wrong with its arguments, and claims nothing', async (context) => {
  const { once, claims } = ledgerOf(context)
  const pay = once.operation({ name: 'pay', effect: 'external' })
  const advice = 'Give a non-blank tenant, caller and key within the limits.'
  const mistakes: [() => Promise<unknown>, string][] = [
    [
      () => pay.run(asNever({ ...who, key: 7 }), 1, never),
      `The identity's \`key\` must be a string, not number. ${advice}`,
    ],
    [() => pay.run({ ...who, tenant: '' }, 1, never), `The identity's \`tenant\` is blank. ${advice}`],
    [
      () => pay.run(who, 1, asNever(undefined)),
      '`run` needs an effect: a function, not undefined. Nothing was claimed.',
    ],
    [
      () => pay.run(who, 1, never, asNever({ timeout: 5 })),
      '`run` has no option `timeout`. Known options: signal, as, decideMs.',
    ],
    [
      async () => pay.begin(who, 1, asNever({ singal: null })),
      '`begin` has no option `singal`. Did you mean `signal`?',
    ],
    [() => pay.claim(who, 1, asNever({ wait: 5 })), '`claim` has no option `wait`. Did you mean `waitMs`?'],
  ]
  for (const [call, message] of mistakes) await assert.rejects(call(), { message })
  assert.deepEqual(claims, [])
})

test('options of a lease are refused for a transaction, which has none', async () => {
  await using once = createLedger({ store: memoryStore(), background: false })
  const definition = { name: 'pay', effect: 'transaction', leaseMs: 5_000 } as const
  assert.throws(
    () => once.operation(definition as never),
    (error) => isOnceError(error, 'bad_option') && /`leaseMs` is for effects with a lease/.test(error.message),
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLedger, isOnceError, notDone, succeeded } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { createHeld, onEveryStore, who } from '../../support/ledger/worlds.ts'

const never = () => assert.fail('the effect ran')

onEveryStore(
  'blank, oversize and broken identity parts are refused by name, and nothing is recorded',
  async ({ once }) => {
    const op = once.operation({ name: 'bad', effect: 'external' })
    const bad: [string, object][] = [
      ['tenant', { tenant: '' }],
      ['caller', { caller: ' \t' }],
      ['key', { key: '' }],
      ['key', { key: undefined }],
      ['key', { key: 7 }],
      ['key', { key: null }],
      ['key', { key: 'x'.repeat(513) }],
      ['key', { key: 'ü'.repeat(257) }],
      ['key', { key: 'a\0b' }],
      ['key', { key: '\ud800' }],
      ['batch', { batch: '' }],
    ]
    for (const [part, parts] of bad) {
      await assert.rejects(op.run({ ...who('k'), ...parts }, 1, never), (error) => {
        assert.ok(isOnceError(error, 'bad_identity'), String(error))
        assert.equal(error.details['part'], part)
        return true
      })
    }
    await op.run(who('ü'.repeat(256)), 1, () => 1)
    assert.equal((await once.count()).succeeded, 1)
  },
)

onEveryStore(
  'callers cannot reach the claims of business uniqueness, and nonsense waits are bounded',
  async ({ once }) => {
    const op = once.operation({ name: 'op', effect: 'repeatable', whileRunning: 'conflict' })
    const stolen = op.run({ tenant: 't', caller: '*', operation: 'unique:ref', key: 'v' }, 1, never)
    await assert.rejects(stolen, (error) => isOnceError(error, 'bad_identity'))
    for (const [index, retryAfterMs] of [Number.NaN, Number.POSITIVE_INFINITY, -5, 1.5, 1e300].entries()) {
      const failing = await op.execute(who(`k${index}`), 1, () => {
        throw notDone(new Error('later'), { retryAfterMs })
      })
      assert.ok(failing.kind === 'refused' && failing.error.code === 'not_done')
      const state = (await once.get({ ...who(`k${index}`), operation: 'op' }))?.record.state
      assert.equal(state, 'failed_retryable', String(retryAfterMs))
    }
    const lease = await op.claim(who('pointer'), 1)
    assert.ok(lease.kind === 'first_attempt')
    const broken = lease.lease.settle(succeeded(1, { type: 'x'.repeat(5_000), id: '' }))
    await assert.rejects(broken, (error) => isOnceError(error, 'bad_input'))
    for (const limit of [Number.NaN, 0, -1, 1.5]) {
      await assert.rejects(
        async () => once.list({}, { limit }),
        (error) => isOnceError(error, 'bad_option'),
      )
    }
  },
)

onEveryStore('inputs that cannot be fingerprinted are refused before anything is claimed', async ({ once }) => {
  const op = once.operation({ name: 'input', effect: 'external' })
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  for (const input of [
    cycle,
    { f: () => 1 },
    { n: Number.NaN },
    { s: Symbol('s') },
    { text: '\ud800' },
    { m: new Map() },
  ]) {
    await assert.rejects(op.run(who('k'), input, never), (error) => isOnceError(error, 'bad_input'))
  }
  assert.equal(await once.get({ ...who('k'), operation: 'input' }), null)
})

test('a wrong option stops the declaration and is named', () => {
  const once = createLedger({ store: memoryStore(), background: false })
  const bad: [string, object][] = [
    ['name', { name: '' }],
    ['name', { name: 'unique:x' }],
    ['name', { name: 'x'.repeat(129) }],
    ['effect', { effect: undefined }],
    ['effect', { effect: 'idempotent' }],
    ['retainMs', { retainMs: 0 }],
    ['retainMs', { retainMs: 1.5 }],
    ['leaseMs', { leaseMs: 10 }],
    ['maxRunMs', { leaseMs: 60_000, maxRunMs: 30_000 }],
    ['refuseMs', { refuseMs: 5 }],
    ['afterExpiry', { afterExpiry: 'never' }],
    ['onAbandoned', { onAbandoned: 'probe' }],
    ['onAbandoned', { onAbandoned: 'retry' }],
    ['whileRunning', { whileRunning: 'wait' }],
    ['whileRunning.waitMs', { whileRunning: { waitMs: -1 } }],
    ['keep', { keep: 'all' }],
    ['rebuild', { keep: 'pointer' }],
    ['sensitive', { sensitive: true }],
    ['authorize', { sensitive: true, keep: 'outcome' }],
    ['shapes', { shape: 2, shapes: { 2: () => 1 } }],
    ['shapes', { shapes: { 2: 5 } }],
    ['leaseMS', { leaseMS: 1_000 }],
    ['retainFrom', { retainFrom: 'bogus' }],
    ['probe', { probe: 5 }],
    ['classify', { classify: 3 }],
    ['authorize', { authorize: 1 }],
    ['fingerprint', { fingerprint: 'a' }],
    ['perKeyLimit.attempts', { perKeyLimit: { attempts: 'x', perMs: 1 } }],
    ['perKeyLimit.perMs', { perKeyLimit: { attempts: 1, perMs: -1 } }],
    ['whileRunning.waitMs', { whileRunning: { waitMs: 30 * 86_400_000 } }],
  ]
  for (const [option, part] of bad) {
    assert.throws(
      () => once.operation({ name: 'x', effect: 'external', ...part } as never),
      (error) => isOnceError(error, 'bad_option') && error.details['option'] === option,
      `${option} ${JSON.stringify(part)}`,
    )
  }
  once.operation({ name: 'x', effect: 'external' })
  assert.throws(
    () => once.operation({ name: 'x', effect: 'external' }),
    (error) => isOnceError(error, 'bad_option'),
  )
  assert.throws(
    () => createLedger({ store: undefined as never }),
    (error) => isOnceError(error, 'bad_option'),
  )
})

onEveryStore('a stopped ledger refuses new work with a typed error', async ({ second }) => {
  const ledger = await second()
  const op = ledger.operation({ name: 'late', effect: 'external' })
  const held = createHeld<string>()
  const running = op.run(who('k'), 1, held.effect)
  await held.begun
  const stopping = ledger.stop()
  held.finish('kept')
  await stopping
  assert.equal(await running, 'kept')
  await assert.rejects(op.run(who('j'), 1, never), (error) => isOnceError(error, 'stopped'))
  await ledger.stop()
})

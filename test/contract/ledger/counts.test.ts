import assert from 'node:assert/strict'
import type { Ledger } from 'onceonly'
import { createGuard } from 'onceonly/guard'
import { kinds, onEveryStore } from '../../support/ledger/worlds.ts'

const who = (key: string) => ({ tenant: 'acme', caller: 'web', key })
const never = () => assert.fail('the effect ran again')

/** What was counted for one operation, after it was written. */
async function counted(once: Ledger<unknown>, operation: string) {
  await once.stop()
  const rows = await once.busiest({ limit: 100 })
  const row = rows.find((each) => each.operation === operation)
  return { claims: row?.claims, replays: row?.replays, conflicts: row?.conflicts, inProgress: row?.inProgress }
}

onEveryStore(
  'one send and five blocked duplicates are one first attempt and five replays',
  async ({ once, events }) => {
    const guard = createGuard<string>({ ledger: once, name: 'g', identity: (text) => ['acme', text] })
    const send = () => guard.send('hello', async (attempt) => attempt?.attach({ type: 'message', id: 'm-1' }))
    assert.equal((await send()).kind, 'sent')
    for (let again = 0; again < 5; again++) assert.equal((await send()).kind, 'duplicate')
    assert.deepEqual(kinds(events), ['claimed', 'settled', ...Array<string>(5).fill('replayed')])
    assert.deepEqual(await counted(once, 'guard.g'), { claims: 1, replays: 5, conflicts: 0, inProgress: 0 })
  },
)

onEveryStore('a duplicate that waits for an original in flight is counted once', async ({ once, second, events }) => {
  const identity = (text: string) => ['acme', text] as const
  const other = createGuard<string>({ ledger: await second(), name: 'g', identity })
  const guard = createGuard<string>({ ledger: once, name: 'g', waitMs: 50, identity })
  const begun = Promise.withResolvers<void>()
  const refused = Promise.withResolvers<void>()
  const original = other.send('hello', async () => {
    begun.resolve()
    await refused.promise
  })
  await begun.promise
  assert.equal((await guard.send('hello', never)).kind, 'pending')
  refused.resolve()
  await original
  assert.deepEqual(kinds(events), ['claimed', 'in_progress', 'settled'])
  assert.deepEqual(await counted(once, 'guard.g'), { claims: 0, replays: 0, conflicts: 0, inProgress: 1 })
})

onEveryStore('claims, replays, joins and conflicts are counted by what was decided', async ({ once, second }) => {
  const define = { name: 'pay', effect: 'repeatable' } as const
  const pay = once.operation<number>(define)
  const elsewhere = (await second()).operation<number>(define)
  await pay.run(who('k'), 1, () => 'paid')
  await pay.run(who('k'), 1, never)
  await pay.execute(who('k'), 2, never)
  assert.equal((await pay.claim(who('k'), 1)).kind, 'replay_success')
  assert.equal((await pay.claim(who('k'), 2)).kind, 'key_reused')
  // A duplicate in another process claims twice: once to find it running, and once when it was given back.
  const held = await elsewhere.claim(who('held'), 1)
  assert.ok(held.kind === 'first_attempt')
  assert.equal((await pay.claim(who('held'), 1)).kind, 'in_progress')
  const joined = pay.execute(who('held'), 1, never)
  await held.lease.settle({ kind: 'succeeded', value: 'paid', pointer: null })
  assert.ok(['joined', 'replayed'].includes((await joined).kind))
  assert.deepEqual(await counted(once, 'pay'), { claims: 1, replays: 3, conflicts: 2, inProgress: 1 })
})

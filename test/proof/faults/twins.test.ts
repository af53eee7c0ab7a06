import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import type { CrashStore } from '../../support/place.ts'
import { onEveryPlace, who } from '../../support/place.ts'

const never = () => assert.fail('the effect ran again')
const define = { name: 'twins', effect: 'transaction', whileRunning: 'conflict' } as const

/** The same store, whose transactions pause after their claim until `proceed` is called. */
function resting(store: CrashStore): { store: CrashStore; claimed: Promise<void>; proceed(): void } {
  const claimed = Promise.withResolvers<void>()
  const rested = Promise.withResolvers<void>()
  return {
    claimed: claimed.promise,
    proceed: rested.resolve,
    store: {
      ...store,
      transactions: {
        run: (work, call) =>
          store.transactions.run(async (session) => {
            return await work({
              ...session,
              apply: async (request) => {
                const applied = await session.apply(request)
                claimed.resolve()
                await rested.promise
                return applied
              },
            })
          }, call),
      },
    },
  }
}

onEveryPlace(
  'a settled command is replayed, also while a duplicate that only replays it holds the record',
  async (place) => {
    const first = createLedger({ store: place.store, background: false })
    assert.equal(await first.operation(define).run(who('k'), 1, () => 'done'), 'done')
    const { store, claimed, proceed } = resting(place.another())
    const slow = createLedger({ store, background: false })
    const replaying = slow.operation(define).execute(who('k'), 1, never)
    await claimed
    const other = createLedger({ store: place.another(), background: false })
    const asked = other.operation(define).execute(who('k'), 1, never)
    // SQLite has one writer, and others wait for its holder; PostgreSQL answers at once.
    if (place.address.kind === 'sqlite') proceed()
    assert.deepEqual(await asked, { kind: 'replayed', value: 'done' })
    proceed()
    assert.deepEqual(await replaying, { kind: 'replayed', value: 'done' })
    for (const once of [first, slow, other]) await once.stop()
  },
)

for (const whileRunning of ['conflict', { waitMs: 0 }] as const) {
  const policyText = JSON.stringify(whileRunning)
  onEveryPlace(
    `whileRunning ${policyText}: a duplicate that runs elsewhere is refused at once, without waiting`,
    async (place) => {
      const policy = { name: 'twins', effect: 'transaction', whileRunning } as const
      const [here, there] = [0, 1].map(() => createLedger({ store: place.store, background: false }))
      const inside = Promise.withResolvers<void>()
      const rested = Promise.withResolvers<void>()
      const running = here?.operation(policy).execute(who('k'), 1, async () => {
        inside.resolve()
        await rested.promise
        return 'done'
      })
      await inside.promise
      // The other one is paused until the duplicate has its answer: a wait for it would never end.
      const twin = await there?.operation(policy).execute(who('k'), 1, never)
      rested.resolve()
      assert.deepEqual(await running, { kind: 'executed', value: 'done' })
      assert.ok(twin?.kind === 'refused' && twin.error.code === 'in_progress', twin?.kind)
      for (const once of [here, there]) await once?.stop()
    },
  )
}

import assert from 'node:assert/strict'
import { suite } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLedger, isOnceError, limits, SECOND } from 'onceonly'
import type { Child } from '../../support/crew.ts'
import type { Place } from '../../support/place.ts'
import { onPlace, who } from '../../support/place.ts'
import type { LockTask } from './lock-holder.ts'
import type { ReaderTask, ReadLine } from './reader.ts'

const never = () => assert.fail('the effect ran again')

async function lockHolder(place: Place): Promise<Child> {
  assert.ok(place.address.kind === 'sqlite')
  const task: LockTask = { path: place.address.path }
  const child = place.crew.start({ file: import.meta.resolve('./lock-holder.ts'), task })
  await child.heard('holding')
  return child
}

async function reader(place: Place, operation: string, key: string): Promise<() => Promise<ReadLine>> {
  const task: ReaderTask = { address: place.address, operation, key }
  const child = place.crew.start({ file: import.meta.resolve('./reader.ts'), task })
  const ask = () => {
    child.order('read')
    return child.heard<ReadLine>('read')
  }
  // The first one starts the process and opens the file.
  await ask()
  return ask
}

suite('the only writer of SQLite', { concurrency: 2 }, () => {
  onPlace('sqlite', 'held by another process: readers are answered, writers wait without blocking', async (place) => {
    const once = createLedger({ store: place.store, background: false })
    const other = createLedger({ store: place.another(), background: false })
    const define = { name: 'op', effect: 'external' } as const
    const operation = once.operation(define)
    const elsewhere = other.operation(define)
    const transactional = once.operation({ name: 'tx', effect: 'transaction' })
    assert.equal(await operation.run(who('hot'), 1, () => 'hot'), 'hot')
    assert.equal((await operation.execute(who('hot'), 1, never)).kind, 'replayed')
    assert.equal(await transactional.run(who('hot'), 1, () => 'hot'), 'hot')
    assert.equal((await transactional.execute(who('hot'), 1, never)).kind, 'replayed')
    const read = await reader(place, 'op', 'hot')
    const holder = await lockHolder(place)
    const claimed = operation.run(who('new'), 1, () => 'claimed')
    const committed = transactional.run(who('new'), 1, () => 'committed')
    const cold = elsewhere.execute(who('hot'), 1, never)
    // Everything that does not need the writer, several times over; the writer is let go only after all of it.
    for (let round = 0; round < 3; round++) {
      await once.get({ ...who('hot'), operation: 'op' })
      await once.list()
      await once.count()
      await place.store.clock.now({ timeoutMs: 10 * SECOND })
      await place.business()
      const hot = await operation.execute(who('hot'), 1, never)
      assert.equal(hot.kind, 'replayed')
      const hotTx = await transactional.execute(who('hot'), 1, never)
      assert.equal(hotTx.kind, 'replayed')
      assert.equal((await read()).state, 'succeeded')
    }
    holder.order('let go')
    await holder.heard('released')
    assert.equal(await claimed, 'claimed')
    assert.equal(await committed, 'committed')
    assert.deepEqual(await cold, { kind: 'replayed', value: 'hot' })
    for (const ledger of [once, other]) await ledger.stop()
  })

  onPlace('sqlite', 'held by a transaction that waits: every process may read what was there before', async (place) => {
    const once = createLedger({ store: place.store, background: false })
    const transactional = once.operation({ name: 'tx', effect: 'transaction' })
    const operation = once.operation({ name: 'op', effect: 'external' })
    await operation.run(who('hot'), 1, () => 'hot')
    const read = await reader(place, 'op', 'hot')
    const inside = Promise.withResolvers<void>()
    const letGo = Promise.withResolvers<void>()
    const slow = transactional.run(who('slow'), 1, async ({ tx }) => {
      await tx.query('insert into business (key, value) values (?, ?)', ['slow', 'uncommitted'])
      inside.resolve()
      await letGo.promise
      return 'slow'
    })
    await inside.promise
    const claimed = operation.run(who('new'), 1, () => 'claimed')
    for (let round = 0; round < 3; round++) {
      await once.get({ ...who('hot'), operation: 'op' })
      assert.deepEqual(await place.business(), [])
      assert.equal(await once.get({ ...who('slow'), operation: 'tx' }), null)
      assert.equal((await read()).state, 'succeeded')
    }
    letGo.resolve()
    assert.equal(await slow, 'slow')
    assert.equal(await claimed, 'claimed')
    assert.deepEqual(await place.business(), [{ key: 'slow', value: 'uncommitted' }])
    await once.stop()
  })

  onPlace(
    'sqlite',
    'held too long: the transaction is rolled back, and the waiting callers continue',
    async (place) => {
      const once = createLedger({ store: place.store, background: false })
      const transactional = once.operation({ name: 'tx', effect: 'transaction' })
      const operation = once.operation({ name: 'op', effect: 'external' })
      const inside = Promise.withResolvers<void>()
      const over = Promise.withResolvers<void>()
      const woken = Promise.withResolvers<unknown>()
      const startedMs = performance.now()
      const slow = transactional.run(who('slow'), 1, async ({ tx }) => {
        await tx.query('insert into business (key, value) values (?, ?)', ['slow', 'too late'])
        inside.resolve()
        await over.promise
        // The effect continues, but its transaction is over.
        woken.resolve(
          await tx.query('insert into business (key, value) values (?, ?)', ['slow', 'later']).catch((e) => e),
        )
      })
      await inside.promise
      const claimed = operation.run(who('new'), 1, () => 'claimed')
      await assert.rejects(slow, (error) => {
        assert.ok(isOnceError(error, 'transaction_too_long'))
        return error.applied === 'no'
      })
      const tookMs = performance.now() - startedMs
      assert.ok(tookMs >= limits.writerHoldMs - 50, `${tookMs} ms`)
      over.resolve()
      assert.equal(await claimed, 'claimed')
      assert.ok(isOnceError(await woken.promise, 'transaction_too_long'))
      assert.deepEqual(await place.business(), [])
      assert.equal(await once.get({ ...who('slow'), operation: 'tx' }), null)
      assert.equal(await transactional.run(who('slow'), 1, () => 'quick'), 'quick')
      await once.stop()
    },
  )

  onPlace(
    'sqlite',
    'taken by others: a caller that would not wait for a duplicate still waits for its turn',
    async (place) => {
      const once = createLedger({ store: place.store, background: false })
      const slow = once.operation({ name: 'slow', effect: 'transaction' })
      const conflict = once.operation({ name: 'conflict', effect: 'transaction', whileRunning: 'conflict' })
      const hasty = once.operation({ name: 'hasty', effect: 'transaction', whileRunning: { waitMs: 20 } })
      const inside = Promise.withResolvers<void>()
      const first = slow.run(who('other'), 1, async () => {
        inside.resolve()
        // A chance for the others to wait for their turn; they are answered the same when they come later.
        await sleep(SECOND)
      })
      await inside.promise
      // This command does not run elsewhere, so its caller must not get `in_progress`.
      const answers = await Promise.all([conflict, hasty].map((each) => each.execute(who('k'), 1, () => 'ran')))
      for (const answer of answers) assert.deepEqual(answer, { kind: 'executed', value: 'ran' })
      await first
      await once.stop()
    },
  )
})

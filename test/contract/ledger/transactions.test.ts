import assert from 'node:assert/strict'
import type { OutboxMessage } from 'onceonly'
import { final, isOnceError, rerun } from 'onceonly'
import { createHeld, onEveryStore, who } from '../../support/ledger/worlds.ts'

const never = () => assert.fail('the effect ran again')
/** A chance for another interleaving; no test depends on how long it is. */
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

onEveryStore('record and business write commit together; a duplicate replays', async ({ world, once, second }) => {
  const define = { name: 't', effect: 'transaction' } as const
  const here = once.operation(define)
  const there = (await second()).operation(define)
  let effects = 0
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      (i % 2 ? here : there).execute(who('k'), { n: 1 }, async ({ tx }) => {
        effects++
        await world.write(tx, 'row')
        await pause(30)
        return 'done'
      }),
    ),
  )
  for (const answer of answers) assert.ok('value' in answer && answer.value === 'done', answer.kind)
  assert.equal(answers.filter(({ kind }) => kind === 'executed').length, 1)
  assert.deepEqual(await world.written(), ['row'])
  assert.equal(effects, 1)
  const other = await there.execute(who('k'), { n: 2 }, never)
  assert.ok(other.kind === 'refused' && other.error.code === 'key_reused')
})

onEveryStore('two overlapping transactions never see each other uncommitted rows', async ({ world, once, second }) => {
  const a = once.operation({ name: 'a', effect: 'transaction' })
  const b = (await second()).operation({ name: 'b', effect: 'transaction' })
  const seen: unknown[] = []
  const slow = a.run(who('a'), 1, async ({ tx }) => {
    await world.write(tx, 'a')
    await pause(80)
    throw new Error('undo')
  })
  await pause(20)
  const fast = b.run(who('b'), 1, async ({ tx }) => {
    await world.write(tx, 'b')
    await pause(10)
  })
  await assert.rejects(slow, /undo/)
  await fast
  seen.push(...(await world.written()))
  assert.deepEqual(seen, ['b'])
})

onEveryStore('a nested transaction joins as a savepoint, a nested lease is refused', async ({ world, once }) => {
  const outer = once.operation({ name: 'outer', effect: 'transaction' })
  const inner = once.operation({ name: 'inner', effect: 'transaction' })
  const leased = once.operation({ name: 'leased', effect: 'external' })
  await outer.run(who('k'), 1, async ({ tx }) => {
    await world.write(tx, 'outer')
    assert.equal(
      await inner.run(who('in'), 1, async ({ tx: same }) => {
        await world.write(same, 'inner')
        return 5
      }),
      5,
    )
    await assert.rejects(
      inner.run(who('bad'), 1, async ({ tx: same }) => {
        await world.write(same, 'bad')
        throw new Error('inner')
      }),
      /inner/,
    )
    await assert.rejects(leased.run(who('k'), 1, never), (error) => isOnceError(error, 'nested_claim'))
    await assert.rejects(leased.claim(who('k'), 1), (error) => isOnceError(error, 'nested_claim'))
  })
  assert.deepEqual([...(await world.written())].sort(), ['inner', 'outer'])
  assert.deepEqual(await inner.execute(who('in'), 1, never), { kind: 'replayed', value: 5 })
  assert.equal((await inner.execute(who('bad'), 1, () => 1)).kind, 'executed')
  // The inner one is undone with the outer one.
  await assert.rejects(
    outer.run(who('undo'), 1, async () => {
      await inner.run(who('undone'), 1, () => 1)
      throw new Error('outer')
    }),
    /outer/,
  )
  assert.equal(await once.get({ ...who('undone'), operation: 'inner' }), null)
})

onEveryStore('a replay inside a transaction that rolls back leaves no trace', async ({ once }) => {
  const outer = once.operation({ name: 'outer', effect: 'transaction' })
  const inner = once.operation({ name: 'inner', effect: 'transaction' })
  const undone = outer.run(who('k'), 1, async () => {
    await inner.run(who('in'), 1, () => 'phantom')
    assert.equal(await inner.run(who('in'), 1, never), 'phantom')
    throw new Error('undo')
  })
  await assert.rejects(undone, /undo/)
  assert.deepEqual(await inner.execute(who('in'), 1, () => 'real'), { kind: 'executed', value: 'real' })
})

onEveryStore('operators do not act inside a transaction, which they would wait for', async ({ once }) => {
  const op = once.operation({ name: 'op', effect: 'transaction' })
  await op.run(who('k'), 1, async () => {
    const identity = { ...who('other'), operation: 'op' }
    await assert.rejects(once.forget(identity), (error) => isOnceError(error, 'nested_claim'))
    await assert.rejects(once.release(identity), (error) => isOnceError(error, 'nested_claim'))
    await assert.rejects(once.resolve(identity, rerun), (error) => isOnceError(error, 'nested_claim'))
  })
})

onEveryStore(
  'a caller that hangs up while its transaction waits for its turn leaves nothing',
  async ({ world, once }) => {
    const first = once.operation({ name: 'first', effect: 'transaction' })
    const second = once.operation({ name: 'second', effect: 'transaction' })
    if (world.store.name === 'postgres') return
    const held = createHeld<void>()
    const holds = first.run(who('k'), 1, held.effect)
    await held.begun
    const controller = new AbortController()
    const waits = second.run(who('k'), 1, ({ tx }) => world.write(tx, 'late'), { signal: controller.signal })
    await pause(20)
    controller.abort(new Error('client hung up'))
    await assert.rejects(waits, /hung up/)
    held.finish()
    await holds
    // Turns are taken in order: the turn of the caller that left would come before this one.
    await first.run(who('later'), 1, () => {})
    assert.deepEqual(await world.written(), [])
  },
)

onEveryStore('unique inside a transaction commits with it', async ({ once }) => {
  const op = once.operation({ name: 'u', effect: 'transaction' })
  await assert.rejects(
    op.run(who('undone'), 1, async ({ unique }) => {
      assert.deepEqual(await unique('ref', 'R'), { kind: 'claimed' })
      throw new Error('undo')
    }),
    /undo/,
  )
  await op.run(who('first'), 1, async ({ unique }) => assert.deepEqual(await unique('ref', 'R'), { kind: 'claimed' }))
  await assert.rejects(
    op.run(who('second'), 1, async ({ unique }) => {
      const answer = await unique('ref', 'R')
      if (answer.kind === 'taken') throw final(Object.assign(new Error('taken'), { code: 'TAKEN' }))
    }),
    (error) => isOnceError(error, 'effect_failed'),
  )
})

onEveryStore(
  'outbox messages carry ids of the command, and are missing loudly without an outbox',
  async ({ world, once, second }) => {
    const define = { name: 'o', effect: 'transaction' } as const
    const sent: (OutboxMessage & { id: string })[] = []
    const outbox = {
      add: async (tx: unknown, message: OutboxMessage & { id: string }) => {
        sent.push(message)
        await world.write(tx, message.id)
      },
    }
    const publishing = await second()
    publishing.setOutbox(outbox)
    const op = publishing.operation(define)
    await op.run(who('k'), 1, async ({ outbox: box }) => {
      await box.add({ topic: 'a', body: 1 })
      await box.add({ topic: 'b', body: 2 })
    })
    assert.equal(new Set(sent.map(({ id }) => id)).size, 2)
    assert.deepEqual([...(await world.written())].sort(), sent.map(({ id }) => id).sort())
    await assert.rejects(
      once.operation(define).run(who('none'), 1, ({ outbox: box }) => box.add({ topic: 'a', body: 1 })),
      (error) => isOnceError(error, 'outbox_missing'),
    )
  },
)

onEveryStore('a duplicate of a running command is refused at once where the policy says conflict', async ({ once }) => {
  const op = once.operation({ name: 'c', effect: 'transaction', whileRunning: 'conflict' })
  const held = createHeld<string>()
  const slow = op.run(who('k'), 1, held.effect)
  await held.begun
  const twin = await op.execute(who('k'), 1, never)
  assert.ok(twin.kind === 'refused' && twin.error.code === 'in_progress')
  held.finish('done')
  assert.equal(await slow, 'done')
})

onEveryStore('the transaction cannot be used after its end', async ({ world, once }) => {
  const op = once.operation({ name: 'e', effect: 'transaction' })
  let leaked: unknown
  let context: { derive(name: string): string } | undefined
  await op.run(who('k'), 1, (work) => {
    leaked = work.tx
    context = work
  })
  await assert.rejects(async () => world.write(leaked, 'late'))
  assert.throws(
    () => context?.derive('late'),
    (error) => isOnceError(error, 'lease_over'),
  )
  assert.deepEqual(await world.written(), [])
})

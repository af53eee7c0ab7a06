import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError, OnceError } from '../../core/errors.ts'
import { sleep } from './test-store.ts'
import type { Lane, WriterTurn } from './writer.ts'
import { createWriterQueue } from './writer.ts'

function turn(lane: Lane, fields: Partial<WriterTurn> = {}): WriterTurn {
  return { lane, waitMs: 60_000, begin: () => true, late: () => new OnceError('store_busy', 'Late.'), ...fields }
}

test('a lonely group commit is over before the call returns', async () => {
  const queue = createWriterQueue()
  let done = false
  const running = queue.run(turn('batch'), () => {
    done = true
  })
  assert.ok(done)
  await running
})

test('group commits go before transactions, transactions before upkeep, and each runs alone', async () => {
  const queue = createWriterQueue()
  const order: string[] = []
  const open = Promise.withResolvers<void>()
  let alone = true
  const work = (name: string) => async () => {
    assert.ok(alone)
    alone = false
    await sleep(1)
    order.push(name)
    alone = true
  }
  const first = queue.run(turn('transaction'), () => open.promise)
  const others = [
    queue.run(turn('upkeep'), work('upkeep')),
    queue.run(turn('transaction'), work('transaction 1')),
    queue.run(turn('transaction'), work('transaction 2')),
    queue.run(turn('batch'), work('batch 1')),
    queue.run(turn('batch'), work('batch 2')),
  ]
  open.resolve()
  await Promise.all([first, ...others])
  assert.deepEqual(order, ['batch 1', 'batch 2', 'transaction 1', 'transaction 2', 'upkeep'])
})

test('no writer is overtaken forever', async () => {
  const queue = createWriterQueue()
  let flowing = true
  const stream = (async () => {
    while (flowing) await queue.run(turn('batch'), () => sleep(2))
  })()
  const second = (async () => {
    while (flowing) await queue.run(turn('batch'), () => sleep(2))
  })()
  await Promise.all([queue.run(turn('transaction'), () => sleep(1)), queue.run(turn('upkeep'), () => sleep(1))])
  flowing = false
  await Promise.all([stream, second])
})

test('a lock of another process is retried, and the most urgent writer gets it first', async () => {
  const queue = createWriterQueue()
  const order: string[] = []
  let free = false
  const begin = () => free
  const slow = queue.run(turn('transaction', { begin }), () => order.push('transaction'))
  const urgent = queue.run(turn('batch', { begin }), () => order.push('batch'))
  const late = queue.run(turn('batch', { begin, waitMs: 5 }), () => order.push('late'))
  await assert.rejects(late, (error) => isOnceError(error, 'store_busy'))
  free = true
  await Promise.all([slow, urgent, queue.idle()])
  assert.deepEqual(order, ['batch', 'transaction'])
})

test('a writer that cannot begin, or fails, does not stop the others', async () => {
  const queue = createWriterQueue()
  const never = () => {
    throw new Error('no file')
  }
  const hopeless = queue.run(turn('batch', { begin: never }), () => undefined)
  const failing = queue.run(turn('batch'), () => {
    throw new Error('bad work')
  })
  const rejecting = queue.run(turn('batch'), () => Promise.reject(new Error('bad promise')))
  const fine = queue.run(turn('batch'), () => 'fine')
  await assert.rejects(hopeless, /no file/)
  await assert.rejects(failing, /bad work/)
  await assert.rejects(rejecting, /bad promise/)
  assert.equal(await fine, 'fine')
  await queue.idle()
})

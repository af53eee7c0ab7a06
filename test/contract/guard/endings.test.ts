import assert from 'node:assert/strict'
import { isOnceError, MINUTE, notDone } from 'onceonly'
import type { GuardEvent } from 'onceonly/guard'
import { onEveryStore } from '../../support/ledger/worlds.ts'
import { guardOver, hello, type Message, sender } from './messages.ts'

onEveryStore('a send that named nothing keeps its lock for the window, and is reported once', async (bench) => {
  const events: GuardEvent<Message>[] = []
  const guard = guardOver(bench.once, { on: (event) => events.push(event) })
  let sends = 0
  const send = () => guard.send(hello, async () => ++sends)
  assert.deepEqual(await send(), { kind: 'sent', value: 1 })
  for (let again = 0; again < 2; again++) {
    const duplicate = await send()
    assert.ok(duplicate.kind === 'duplicate', duplicate.kind)
    assert.deepEqual(duplicate.original, { type: 'unattached', id: guard.hashOf(hello) })
  }
  assert.equal(sends, 1)
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['unattached', 'blocked', 'blocked'],
  )
  await bench.world.advance(15 * MINUTE)
  assert.deepEqual(await send(), { kind: 'sent', value: 2 })
})

onEveryStore('a send that threw, or said that nothing was done, gives its lock back', async ({ once }) => {
  const events: GuardEvent<Message>[] = []
  const guard = guardOver(once, { on: (event) => events.push(event) })
  const sent: string[] = []
  await assert.rejects(guard.send(hello, () => Promise.reject(new Error('no such lead'))))
  await assert.rejects(guard.send(hello, () => Promise.reject(notDone(new Error('not now')))))
  const came = await guard.send(hello, async (attempt) => {
    attempt?.failed()
    return 'nothing'
  })
  assert.equal(came.kind, 'sent')
  assert.equal((await guard.send(hello, sender(sent, 'm1'))).kind, 'sent')
  assert.deepEqual(events, [])
})

onEveryStore('only a store that cannot be asked opens the guard; every other error is thrown', async (bench) => {
  const { once, second } = bench
  const never = () => assert.fail('sent without its lock')
  const events: GuardEvent<Message>[] = []
  const guard = guardOver(once, { on: (event) => events.push(event), decideMs: MINUTE })
  for (let again = 0; again < 6; again++) {
    await assert.rejects(guard.send({ ...hello, workspace: ' ' }, never), (error) => isOnceError(error, 'bad_identity'))
  }
  const write = once.operation<null>({ name: 'write', effect: 'transaction' })
  const nested = write.run({ tenant: 'w', caller: 'c', key: 'k' }, null, () => guard.send(hello, never))
  await assert.rejects(nested, (error) => isOnceError(error, 'nested_claim'))
  // None of these opened the breaker: the locks themselves work.
  assert.equal((await guard.send(hello, sender([], 'm1'))).kind, 'sent')
  const stopped = await second()
  const late = guardOver(stopped)
  await stopped.stop()
  await assert.rejects(late.send(hello, never), (error) => isOnceError(error, 'stopped'))
  assert.deepEqual(events, [])
})

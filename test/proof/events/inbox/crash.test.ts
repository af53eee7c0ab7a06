import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLedger, limits } from 'onceonly'
import type { IncomingMessage, Receipt } from 'onceonly/inbox'
import { createInbox } from 'onceonly/inbox'
import { memoryStore } from 'onceonly/memory'
import { createProtect } from 'onceonly/node'
import { messageOf } from '../../../support/events/inbox/stage.ts'
import type { Place } from '../../../support/place.ts'
import { onEveryPlace, sqlStore } from '../../../support/place.ts'
import type { Point } from '../../crash/points.ts'
import type { Task } from './victim.ts'

const file = import.meta.resolve('./victim.ts')

interface Delivered {
  readonly message: IncomingMessage
  readonly dies?: Point
  readonly delayUs?: number
  readonly url?: string
}

let victims = 0

/** One delivery in a process of its own; null when that process was killed by it. */
async function deliver(place: Place, { message, dies, delayUs = 0, url }: Delivered): Promise<Receipt | null> {
  const name = `victim-${++victims}`
  const task: Task = { address: place.address, name, message, dies: dies ?? null, delayUs, url: url ?? null }
  const child = place.crew.start({ file, task })
  if (dies === undefined) {
    const { receipt } = await child.heard<{ kind: 'receipt'; receipt: Receipt }>('receipt')
    const { complaints } = await child.ended
    assert.equal(complaints, '')
    return receipt
  }
  const { signal, complaints } = await child.ended
  assert.equal(signal, 'SIGKILL', complaints)
  await place.forgotten(name)
  return null
}

/** The same consumer in this process. */
function openInbox(place: Place) {
  const store = sqlStore(place.store)
  const ledger = createLedger({ store, background: false })
  const inbox = createInbox({ ledger, consumer: 'billing', background: false, maxUnfinished: 2 })
  const stop = async () => {
    await inbox.stop()
    await ledger.stop()
  }
  return { inbox, stop }
}

const rowsOf = async (place: Place) => (await place.business()).map(({ key }) => key)

onEveryPlace('a process that dies under a message leaves nothing, or all of it', async (place) => {
  const undone: readonly Point[] = ['effect_before', 'effect_after', 'settle_known']
  for (const dies of undone) {
    await deliver(place, { message: messageOf(dies), dies })
    assert.deepEqual(await rowsOf(place), [], dies)
  }
  await deliver(place, { message: messageOf('commit_known'), dies: 'commit_known' })
  assert.deepEqual(await rowsOf(place), ['commit_known'])
  await deliver(place, { message: messageOf('commit_sent'), dies: 'commit_sent', delayUs: 200 })
  const { inbox, stop } = openInbox(place)
  for (const id of [...undone, 'commit_known', 'commit_sent']) {
    const redeliver = (deliveries: number) =>
      inbox.receive(messageOf(id, { deliveries }), ({ order }, { tx }) =>
        tx.query('insert into business (key, value) values (?, ?)', [order, 'again']),
      )
    const receipt = await redeliver(2)
    if (id !== 'commit_sent') assert.equal(receipt.kind, id === 'commit_known' ? 'duplicate' : 'handled', id)
    assert.equal((await redeliver(3)).kind, 'duplicate')
  }
  await stop()
  assert.deepEqual(await rowsOf(place), [...undone, 'commit_known', 'commit_sent'].toSorted())
})

onEveryPlace('a message that kills every process is parked, and those beside it are not', async (place) => {
  const { inbox, stop } = openInbox(place)
  const poison = (deliveries: number) => messageOf('poison', { deliveries })
  for (const deliveries of [1, 2, 3]) await deliver(place, { message: poison(deliveries), dies: 'effect_after' })
  assert.equal((await inbox.explain('poison')).unfinished, 2)
  const early = await inbox.receive(poison(4), () => assert.fail('it ran'))
  assert.ok(early.kind === 'later' && !early.counted, 'they may be alive')
  await place.advance(limits.inboxVanishedMs)
  const receipt = await inbox.receive(poison(5), () => assert.fail('it ran'))
  assert.ok(receipt.kind === 'parked' && receipt.reason === 'never_finished')
  assert.match(receipt.failure?.message ?? '', /2 deliveries/)
  assert.equal((await inbox.receive(poison(6), () => assert.fail('it ran'))).kind, 'duplicate')
  // Many deliveries that ended are no reason: an outage, a duplicate, a postponement by the effect.
  const patient = await inbox.receive(messageOf('patient', { deliveries: 99 }), () => {})
  assert.equal(patient.kind, 'handled')
  const [redriven] = await inbox.deadLetters.redrive({}, { effect: () => {} })
  assert.ok(redriven?.result.kind === 'ran' && redriven.result.receipt.kind === 'handled')
  await stop()
})

onEveryPlace('a command of another system, called under the effect key, happens once', async (place) => {
  const shop = createLedger({ store: memoryStore(), background: false })
  const protect = createProtect({ ledger: shop, who: () => ({ tenant: 'acme', caller: 'billing' }) })
  let payments = 0
  const pay = protect({ name: 'payment.create', effect: 'external' }, (_request, response) => {
    response.writeHead(201).end(`payment ${++payments}`)
  })
  let requests = 0
  const server = createServer((request, response) => {
    requests++
    void pay(request, response)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/payments`
  try {
    // The payment is made, and the process dies before its own transaction commits.
    await deliver(place, { message: messageOf('m1'), dies: 'effect_after', url })
    assert.deepEqual([requests, payments, await rowsOf(place)], [1, 1, []])
    const receipt = await deliver(place, { message: messageOf('m1', { deliveries: 2 }), url })
    assert.equal(receipt?.kind, 'handled')
    assert.deepEqual([requests, payments, await rowsOf(place)], [2, 1, ['m1']])
  } finally {
    server.close()
    server.closeAllConnections()
    await shop.stop()
  }
})

import assert from 'node:assert/strict'
import { suite } from 'node:test'
import { createLedger } from 'onceonly'
import type { InboxEvent, Receipt } from 'onceonly/inbox'
import { createInbox } from 'onceonly/inbox'
import { messageOf } from '../../../support/events/inbox/stage.ts'
import type { Place } from '../../../support/place.ts'
import { onPlace, sqlStore } from '../../../support/place.ts'
import type { Link } from '../../faults/link.ts'
import { onLink } from '../../faults/link.ts'

/** An inbox that parks at the first failure that it counts, behind a network that fails on demand. */
function openInbox({ once }: Link) {
  const events: InboxEvent[] = []
  const inbox = createInbox({
    ledger: once,
    consumer: 'billing',
    background: false,
    maxFailures: 1,
    maxUnfinished: 1,
    on: (event) => void events.push(event),
  })
  return { inbox, events }
}

function assertPutOff(receipt: Receipt): void {
  assert.ok(receipt.kind === 'later' && !receipt.counted && receipt.delayMs > 0, JSON.stringify(receipt))
}

async function written(place: Place): Promise<readonly string[]> {
  return (await place.business()).map(({ key }) => key)
}

suite('a database that is away burns no attempt', { concurrency: true }, () => {
  onLink('before the first message, and in the middle of an effect', async (link) => {
    const { proxy, place } = link
    const { inbox, events } = openInbox(link)
    const deliver = (deliveries: number, within: () => void = () => {}) =>
      inbox.receive(messageOf('m1', { deliveries }), async (_, { tx }) => {
        within()
        await tx.query('insert into business (key, value) values (?, ?)', ['m1', 'x'])
      })
    proxy.refuse()
    for (const deliveries of [1, 2, 3]) assertPutOff(await deliver(deliveries))
    await proxy.accept()
    // The connection breaks under the effect, and does not come back until later: not even the end can be written.
    const cut = () => {
      proxy.refuse()
      proxy.cut()
    }
    for (const deliveries of [4, 5, 6]) {
      assertPutOff(await deliver(deliveries, cut))
      await proxy.accept()
    }
    const explained = await inbox.explain('m1')
    assert.deepEqual([explained.failures, explained.unfinished, explained.deadLetter], [0, 0, null])
    assert.equal((await deliver(7)).kind, 'handled')
    assert.deepEqual(await written(place), ['m1'])
    assert.ok(events.every(({ kind }) => kind === 'postponed' || kind === 'handled'))
    await inbox.stop()
  })

  onLink('although it is back before failures are counted', async (link) => {
    const { proxy } = link
    const { inbox } = openInbox(link)
    const bodies: unknown[] = []
    const receipt = await inbox.receive(messageOf('m1'), async (body, { tx }) => {
      bodies.push({ ...body })
      body.order = 'changed by an earlier run'
      proxy.cut()
      // As repositories do it: the store's own word is wrapped.
      await tx.query('select 1').catch((cause: unknown) => {
        throw new Error('the invoice could not be saved', { cause })
      })
    })
    assertPutOff(receipt)
    // The ledger tries a broken transaction again by itself, each time with a body as it came.
    assert.ok(bodies.length > 1)
    for (const body of bodies) assert.deepEqual(body, { order: 'm1' })
    assert.equal((await inbox.explain('m1')).failures, 0)
    assert.equal((await inbox.receive(messageOf('m1', { deliveries: 2 }), () => {})).kind, 'handled')
    await inbox.stop()
  })

  onLink('while a failure is being counted', async (link) => {
    const { proxy } = link
    const { inbox } = openInbox(link)
    assert.equal((await inbox.receive(messageOf('first'), () => {})).kind, 'handled')
    const receipt = await inbox.receive(messageOf('m1'), () => {
      proxy.refuse()
      proxy.cut()
      throw new Error('its own fault')
    })
    assertPutOff(receipt)
    await proxy.accept()
    assert.equal((await inbox.explain('m1')).failures, 0)
    await inbox.stop()
  })

  onLink('and a commit whose answer was lost is not run again', async (link) => {
    const { place } = link
    const { inbox } = openInbox(link)
    assert.equal((await inbox.receive(messageOf('first'), () => {})).kind, 'handled')
    let runs = 0
    const loss = link.loseAnswerTo('COMMIT')
    const receipt = await inbox.receive(messageOf('m1'), async (_, { tx }) => {
      runs++
      await tx.query('insert into business (key, value) values (?, ?)', ['m1', 'x'])
    })
    assert.ok(loss.lost)
    assert.deepEqual([receipt.kind, runs, await written(place)], ['handled', 1, ['m1']])
    await inbox.stop()
  })
})

onPlace('sqlite', 'a write lock of another process costs no attempt either', async (place) => {
  assert.ok(place.address.kind === 'sqlite')
  const store = sqlStore(place.store)
  const ledger = createLedger({ store, background: false })
  const inbox = createInbox({ ledger, consumer: 'billing', background: false, maxFailures: 1, maxUnfinished: 1 })
  assert.equal((await inbox.receive(messageOf('first'), () => {})).kind, 'handled')
  const file = import.meta.resolve('../../faults/lock-holder.ts')
  const holder = place.crew.start({ file, task: { path: place.address.path } })
  await holder.heard('holding')
  assertPutOff(await inbox.receive(messageOf('m1'), () => {}))
  holder.signal('SIGKILL')
  await holder.ended
  assert.equal((await inbox.receive(messageOf('m1', { deliveries: 2 }), () => {})).kind, 'handled')
  await inbox.stop()
  await ledger.stop()
})

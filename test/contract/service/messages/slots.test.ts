import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { readConfig } from '../../../../service/config.ts'
import { LATE_SHARE } from '../../../../service/messages/channels/channel.ts'
import { migrations } from '../../../../service/messages/schema.ts'
import { createSlots, type Slot } from '../../../../service/messages/slots.ts'
import { type Base, openBase } from '../../../../service/store.ts'
import { createDatabase } from '../../../../tools/servers/database.ts'
import { onEveryPlace } from '../../../support/service/cluster.ts'
import { openDelivery, sent } from '../../../support/service/messages/delivery.ts'

const SEND_TIMEOUT_MS = 1_000

onEveryPlace('slots of providers', (place) => {
  let folder: string
  let database: Awaited<ReturnType<typeof createDatabase>> | null = null
  const bases: Base[] = []
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'onceonly-slots-'))
    if (place === 'postgres') database = await createDatabase(process.env['ONCEONLY_TEST_POSTGRES_URL'] ?? '')
    for (let process = 0; process < 3; process++) {
      const config = readConfig({
        ONCEONLY_DATA: folder,
        ONCEONLY_STORE: database?.url ?? '',
        ONCEONLY_TEST_CLOCK: '1',
      })
      bases.push(openBase(config, null))
    }
    for (const base of bases) await base.sql.migrate('messages', migrations)
  })
  after(async () => {
    for (const base of bases) await base.stop()
    await database?.drop()
    await rm(folder, { recursive: true, force: true })
  })

  const open = (limit: number, perMs: number, channel: string) =>
    bases.map((base) => {
      const failed = (_channel: string, error: unknown) => assert.fail(String(error))
      return createSlots({
        base,
        rates: new Map([[channel, { limit, perMs }]]),
        callMs: SEND_TIMEOUT_MS * LATE_SHARE,
        failed,
      })
    })

  test('three processes never call a provider more often within any span than its rate', async () => {
    const [limit, perMs, calls] = [5, 250, 24]
    const arrivals: number[] = []
    let left = calls
    async function callInTurn(slots: ReturnType<typeof createSlots>): Promise<void> {
      while (left > 0) {
        left -= 1
        for (;;) {
          const taken = await slots.take('webhook')
          if (taken.kind === 'full') {
            await sleep(taken.waitMs)
            continue
          }
          // The provider counts somewhere between the begin of the call and its end.
          await sleep(Math.random() * 40)
          arrivals.push(performance.now())
          await sleep(Math.random() * 40)
          await taken.slot.end()
          break
        }
      }
    }
    await Promise.all([...open(limit, perMs, 'webhook'), ...open(limit, perMs, 'webhook')].map(callInTurn))
    assert.equal(arrivals.length, calls)
    arrivals.sort((a, b) => a - b)
    const spans = arrivals.slice(limit).map((at, index) => at - (arrivals[index] ?? 0))
    // Timers of this process may fire within the millisecond before.
    assert.ok(Math.min(...spans) >= perMs - 1, `${limit + 1} calls within ${Math.min(...spans)} ms`)
  })

  test('the slot of a process that died is free after the longest call and a span, and not given back twice', async () => {
    const [slots] = open(1, 60_000, 'smtp')
    const dead = await slotOf(slots?.take('smtp'))
    const isFull = async () => (await slots?.take('smtp'))?.kind === 'full'
    assert.ok(await isFull())
    await bases[0]?.advance(60_000)
    assert.ok(await isFull(), 'its call may still be under way')
    await bases[0]?.advance(SEND_TIMEOUT_MS * 4 + 10_000)
    await slotOf(slots?.take('smtp'))
    // It was not dead after all: what it says now is about a slot that another call has.
    await dead.end()
    await bases[0]?.advance(60_000)
    assert.ok(await isFull())
  })

  test('those that wait have turns of their own, one after the other', async () => {
    const [one, two] = open(2, 60_000, 'twilio')
    for (const slots of [one, two]) await slotOf(slots?.take('twilio'))
    const waits: number[] = []
    for (const slots of [one, two, one, two]) {
      const taken = await slots?.take('twilio')
      assert.equal(taken?.kind, 'full')
      waits.push(taken.waitMs)
    }
    const steps = waits.slice(1).map((wait, at) => Math.round((wait - (waits[at] ?? 0)) / 10_000))
    assert.deepEqual(steps, [3, 3, 3])
  })
})

async function slotOf(taking: ReturnType<ReturnType<typeof createSlots>['take']> | undefined): Promise<Slot> {
  const taken = await taking
  assert.equal(taken?.kind, 'slot')
  return taken.slot
}

test('a message without a slot stays queued until its turn, and its provider is not called', async () => {
  let calls = 0
  const rates = new Map([['webhook', { limit: 1, perMs: 60_000 }]])
  await using world = await openDelivery(
    async () => {
      calls++
      return sent
    },
    { rates },
  )
  const { base, row, delivery, stateOf } = world
  await slotOf(createSlots({ base, rates, callMs: 200 * LATE_SHARE, failed: () => {} }).take('webhook'))
  const queued = await delivery.deliver(row)
  assert.deepEqual([queued.status, queued.error, calls], ['queued', 'The rate of webhook is used up', 0])
  assert.ok(Number(queued.due_at) > Number(queued.status_at) + 50_000, 'its turn is a span away')
  await base.advance(120_000)
  await delivery.deliver(await stateOf())
  assert.deepEqual([(await stateOf()).status, (await stateOf()).error, calls], ['sent', null, 1])
})

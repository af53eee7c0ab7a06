import assert from 'node:assert/strict'
import { suite } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LeasedOperation } from 'onceonly'
import { createLedger, limits, SECOND, succeeded } from 'onceonly'
import type { Child } from '../../support/crew.ts'
import type { Place } from '../../support/place.ts'
import { onEveryPlace, sqlOf, who } from '../../support/place.ts'
import { until } from '../../support/until.ts'
import { machineMs } from '../crash/member.ts'
import type { JoinerTask, Knew, Looked } from './joiner.ts'
import { joinable } from './joiner.ts'
import { onLink } from './link.ts'

const never = () => assert.fail('the effect ran twice')
const names = ['a', 'b', 'c', 'd', 'e']
/** A notified joiner knows within this; it takes a tenth of it on a machine with nothing else to do. */
const SOON_MS = 200
/** Other programs may take the processor away from whoever was woken; what never comes soon is not notified. */
const ROUNDS = 3
const PATIENCE_MS = 20 * SECOND
/** After this many looks the next one is a whole second away. */
const LOOKS = 8

function joiner(place: Place, keys: readonly string[], deaf: boolean): Child {
  const task: JoinerTask = { address: place.address, keys, deaf }
  return place.crew.start({ file: import.meta.resolve('./joiner.ts'), task })
}

/** Until every key was looked at so often that the next look is far away. Answers the time of the last one. */
async function untilRarely(child: Child): Promise<number> {
  let last = 0
  for (let looks = 0; looks < LOOKS * names.length; looks++) last = (await child.heard<Looked>('looked')).at
  return last
}

async function allKnew(child: Child): Promise<Knew[]> {
  const knew: Knew[] = []
  for (const _ of names) knew.push(await child.heard<Knew>('knew'))
  for (const { key, how } of knew) assert.equal(how, `joined ${key} is done`)
  return knew
}

/** Whether joiners knew of a settle soon, and before they would have looked again. */
async function wokenInTime(
  place: Place,
  operation: LeasedOperation<unknown>,
  keys: readonly string[],
): Promise<boolean> {
  const leases = await Promise.all(
    keys.map(async (key) => {
      const claimed = await operation.claim(who(key), 1)
      assert.ok(claimed.kind === 'first_attempt')
      return { key, lease: claimed.lease }
    }),
  )
  const [hearing, deaf] = [joiner(place, keys, false), joiner(place, keys, true)]
  const [hearingLooked, deafLooked] = await Promise.all([hearing, deaf].map(untilRarely))
  await sleep(50)
  const settledAt = new Map<string, number>()
  for (const { key, lease } of leases) {
    await lease.settle(succeeded(`${key} is done`))
    settledAt.set(key, machineMs())
  }
  const lateMs = ({ key, at }: Knew) => at - (settledAt.get(key) ?? 0)
  const knew = await allKnew(hearing)
  const woken = knew.map(lateMs).toSorted((a, b) => a - b)
  // The next look would be due a second after the last one.
  const nextLookMs = (hearingLooked ?? 0) + limits.joinPollCapMs - Math.max(...knew.map(({ at }) => at))
  console.log(
    `${place.address.kind}: knew after ${woken.map((ms) => ms.toFixed(1))} ms; next look in ${nextLookMs.toFixed(0)} ms`,
  )
  // Without notifications the very same settle is noticed by the next look, and not before.
  for (const { at } of await allKnew(deaf)) {
    assert.ok(at - (deafLooked ?? 0) > limits.joinPollCapMs / 2, `looked again after ${at - (deafLooked ?? 0)} ms`)
  }
  return nextLookMs > 0 && (woken[0] ?? 0) < SOON_MS
}

suite('joiners in other processes', { concurrency: true }, () => {
  onEveryPlace('are woken when the attempt settles, long before they would look again', async (place) => {
    const once = createLedger({ store: place.store, background: false })
    const operation = once.operation(joinable)
    let shown = false
    for (let round = 0; round < ROUNDS && !shown; round++) {
      shown = await wokenInTime(
        place,
        operation,
        names.map((name) => `${name}${round}`),
      )
    }
    assert.ok(shown, 'never woken before the next look')
    await once.stop()
  })

  onLink('hear of it although their connections, the listener’s too, were cut meanwhile', async (link) => {
    const { once, place, proxy } = link
    const holder = createLedger({ store: place.store, background: false })
    const claimed = await holder.operation(joinable).claim(who('k'), 1)
    assert.ok(claimed.kind === 'first_attempt')
    const joined = once.operation(joinable).execute(who('k'), 1, never)
    joined.catch(() => {})
    // Its claim has been answered: what is cut from now on is its waiting.
    const waiting = "select 1 from onceonly_records where key = 'k' and awaited = 1"
    await until(async () => (await sqlOf(place.store).query(waiting)).length === 1, PATIENCE_MS)
    for (let cuts = 0; cuts < 5; cuts++) {
      await sleep(200)
      proxy.cut()
    }
    proxy.refuse()
    proxy.cut()
    await sleep(1 * SECOND)
    await proxy.accept()
    await claimed.lease.settle(succeeded('done'))
    assert.deepEqual(await joined, { kind: 'joined', value: 'done' })
    await holder.stop()
  })
})

import assert from 'node:assert/strict'
import { suite } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLedger, SECOND, succeeded } from 'onceonly'
import { until } from '../../../src/testing/until.ts'
import type { Child } from '../../support/crew.ts'
import type { Place } from '../../support/place.ts'
import { onEveryPlace, sqlOf, who } from '../../support/place.ts'
import type { JoinerTask, Knew } from './joiner.ts'
import { joinable } from './joiner.ts'
import { onLink } from './link.ts'

const never = () => assert.fail('the effect ran twice')
const names = ['a', 'b', 'c', 'd', 'e']
/** After this many looks the next one is a whole second away. */
const LOOKS = 8

function joiner(place: Place, keys: readonly string[], deaf: boolean): Child {
  const task: JoinerTask = { address: place.address, keys, deaf }
  return place.crew.start({ file: import.meta.resolve('./joiner.ts'), task })
}

/** Until every key was looked at so often that the next look is far away. */
async function untilRarely(child: Child): Promise<void> {
  for (let looks = 0; looks < LOOKS * names.length; looks++) await child.heard('looked')
}

async function allKnew(child: Child): Promise<void> {
  for (const _ of names) {
    const { key, how } = await child.heard<Knew>('knew')
    assert.equal(how, `joined ${key} is done`)
  }
}

suite('joiners in other processes', { concurrency: true }, () => {
  onEveryPlace('are woken when the attempt settles, long before they would look again', async (place) => {
    const once = createLedger({ store: place.store, background: false })
    const operation = once.operation(joinable)
    const leases = await Promise.all(
      names.map(async (key) => {
        const claimed = await operation.claim(who(key), 1)
        assert.ok(claimed.kind === 'first_attempt')
        return { key, lease: claimed.lease }
      }),
    )
    const [hearing, deaf] = [joiner(place, names, false), joiner(place, names, true)]
    await Promise.all([hearing, deaf].map(untilRarely))
    // One of them never looks again: each of its keys has come to a look that it does not take any more.
    hearing.order('be blind')
    for (const _ of names) await hearing.heard('blind')
    for (const { key, lease } of leases) await lease.settle(succeeded(`${key} is done`))
    await allKnew(hearing)
    // Without notifications the very same settle is noticed by the next look.
    await allKnew(deaf)
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
    await until('its claim is answered', async () => (await sqlOf(place.store).query(waiting)).length === 1)
    for (let cuts = 0; cuts < 5; cuts++) {
      // A chance to connect again, so that there is something to cut.
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

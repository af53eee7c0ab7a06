import { setTimeout as sleep } from 'node:timers/promises'
import { createLedger, SECOND } from 'onceonly'
import { createRandom } from '../../../src/testing/random.ts'
import { onPlace, openStore, sqlOf } from '../../support/place.ts'
import { onLink } from './link.ts'
import { steadyUnder } from './steady.ts'

const NAME = 'to-be-terminated'
/** At least so long, and until there was enough of both. */
const durationMs = 4 * SECOND

onPlace('postgres', 'sessions that the server ends again and again under load: one effect each', async (place) => {
  const { store, close } = openStore(place.address, NAME)
  const once = createLedger({ store, background: false })
  let terminated = 0
  // As by a failover: every session of the application at once.
  const disturb = async () => {
    await sleep(60)
    const ended = await sqlOf(place.store).query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = ?',
      [NAME],
    )
    terminated += ended.length
  }
  const commands = await steadyUnder({
    once,
    place,
    durationMs,
    disturb,
    enough: (ended) => ended > 20 && terminated > 20,
  })
  console.log(`${commands} commands of each kind, ${terminated} sessions terminated`)
  await close()
})

onLink('a network that loses requests and answers under load: one effect each', async (link) => {
  const { once, place, proxy } = link
  const random = createRandom(Date.now())
  let troubles = 0
  const ways: readonly (() => void | Promise<void>)[] = [
    proxy.cut,
    proxy.cutResponses,
    proxy.dropNextResponse,
    () => proxy.dropNextResponse({ when: (request) => request.includes('COMMIT\0') }),
    () => {
      proxy.delayMs = random.below(4)
    },
    async () => {
      proxy.refuse()
      proxy.cut()
      await sleep(random.below(200))
      await proxy.accept()
    },
  ]
  const disturb = async () => {
    await sleep(20 + random.below(100))
    troubles++
    await random.pick(ways)()
  }
  const commands = await steadyUnder({
    once,
    place,
    durationMs,
    disturb,
    enough: (ended) => ended > 10 && troubles > 10,
  })
  console.log(`${commands} commands of each kind, ${troubles} troubles`)
})

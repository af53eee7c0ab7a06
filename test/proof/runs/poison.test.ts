import assert from 'node:assert/strict'
import { createEngine } from 'onceonly/run'
import { until } from '../../../src/testing/until.ts'
import type { Child } from '../../support/crew.ts'
import type { Place } from '../../support/place.ts'
import { onEveryPlace, sqlStore } from '../../support/place.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import type { Begun, Parked, PoisonTask } from './poison.ts'
import { innocent, poison } from './poison.ts'

const INNOCENT = 50
const PROCESSES = 3
const TAKEOVERS = 3
/** Longer than a busy machine keeps a worker from its heartbeat, so that only the dead lose their runs. */
const LEASE_MS = 3_000

/** Worker processes that are started again when they die. */
function supervise(place: Place) {
  const children: Child[] = []
  let isOver = false
  async function keepOne(slot: number): Promise<void> {
    for (let turn = 0; !isOver; turn++) {
      const task: PoisonTask = {
        address: place.address,
        name: `worker ${slot} ${turn}`,
        leaseMs: LEASE_MS,
        concurrency: 20,
      }
      const child = place.crew.start({ file: import.meta.resolve('./poison.ts'), task })
      children.push(child)
      await child.ended
    }
  }
  const keeping = Array.from({ length: PROCESSES }, (_, slot) => keepOne(slot))
  const reports: Parked[] = []
  const parked = () => {
    reports.push(...children.flatMap((child) => child.heardSoFar<Parked>('parked')))
    return reports
  }
  return {
    parked,
    async end() {
      isOver = true
      for (const child of children) child.signal('SIGKILL')
      await Promise.all(keeping)
      const begun = children.flatMap((child) => child.heardSoFar<Begun>('begun')).map(({ runId }) => runId)
      return { begun, parked: parked() }
    },
  }
}

onEveryPlace(
  'a run that kills its worker is parked after three takeovers, and the runs beside it end',
  async (place) => {
    const runs = [poison(() => {}), innocent(() => {})] as const
    const store = sqlStore(place.store)
    await using looker = await createEngine({ ledger: quietLedger(store), runs, work: false })
    for (let n = 0; n < INNOCENT; n++) {
      if (n === INNOCENT / 2) await looker.start(runs[0], { runId: 'poison', input: null })
      await looker.start(runs[1], { runId: `innocent ${n}`, input: null })
    }
    const workers = supervise(place)
    const ended = await until(
      'the innocent runs have ended and the other one is parked',
      async () => {
        const { runs: listed } = await looker.list({ limit: 100 })
        return listed.map(({ state }) => state)
      },
      (states) => states.every((state) => state === 'succeeded' || state === 'unknown'),
    )
    assert.equal(ended.filter((state) => state === 'succeeded').length, INNOCENT)
    // It is recorded before it is reported.
    await until('it was reported', async () => workers.parked().length > 0)
    const { begun, parked } = await workers.end()
    assert.deepEqual(parked, [{ kind: 'parked', runId: 'poison', definition: 'poison', takeovers: TAKEOVERS }])
    const begins = Map.groupBy(begun, (runId) => runId)
    assert.equal(begins.get('poison')?.length, TAKEOVERS)
    for (const [runId, times] of begins)
      assert.ok(times.length <= TAKEOVERS, `${runId} was begun ${times.length} times`)
    // A signal does not wake it; an operator's resume does.
    await looker.signal('poison', 'hello', null)
    await using mended = await createEngine({ ledger: quietLedger(sqlStore(place.another())), runs, pollMs: 20 })
    const view = await mended.get('poison')
    assert.deepEqual([view.state, view.failure?.code], ['unknown', 'run_parked'])
    await mended.resume('poison')
    assert.equal(await mended.handle('poison').result({ waitMs: 60_000 }), 'survived')
  },
)

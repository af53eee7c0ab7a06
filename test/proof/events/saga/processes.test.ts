import assert from 'node:assert/strict'
import { MINUTE } from 'onceonly'
import type { IncomingMessage } from 'onceonly/inbox'
import type { Replica } from '../../../support/events/saga/stage.ts'
import { handled, onEveryStage, parsed, saved, started, stateOf } from '../../../support/events/saga/stage.ts'
import type { Place } from '../../../support/place.ts'
import { sqlOf } from '../../../support/place.ts'
import type { Done, Order, WorkerTask } from './worker.ts'

const PROCESSES = 4

function startWorker(place: Place, name: string, dies?: WorkerTask['dies']) {
  const task: WorkerTask = { address: place.address, name, ...(dies === undefined ? {} : { dies }) }
  return place.crew.start({ file: import.meta.resolve('./worker.ts'), task })
}

/** All processes begin at once, and work until nothing is left. */
async function together(place: Place, shares: readonly (readonly IncomingMessage[])[]): Promise<readonly Done[]> {
  const workers = shares.map((_, index) => startWorker(place, `worker-${index}`))
  for (const worker of workers) await worker.heard('ready')
  workers.forEach((worker, index) => {
    worker.order({ messages: shares[index] ?? [], deliver: false } satisfies Order)
  })
  return await Promise.all(workers.map((worker) => worker.heard<Done>('done')))
}

function assertQuiet(done: readonly Done[]): void {
  for (const { complaints, receipts } of done) {
    assert.deepEqual(complaints, [])
    assert.equal(receipts['parked'] ?? 0, 0)
    assert.equal(receipts['conflict'] ?? 0, 0)
  }
}

const countOf = (lines: readonly string[], topic: string) => lines.filter((line) => line.startsWith(`${topic} `)).length

onEveryStage('four processes race for the first events of many instances', async ({ place, replica, sent }) => {
  const one = replica()
  await one.saga.get('nothing yet')
  const ids = Array.from({ length: 15 }, (_, index) => `search ${index}`)
  // Every process has an announcement of its own, as different replicas of a storage would make them.
  const shares = Array.from({ length: PROCESSES }, () => ids.map((id) => saved(id, ['a', 'b'])))
  assertQuiet(await together(place, shares))
  assert.equal(countOf(await sent(), 'StartParsing'), 2 * ids.length)
  for (const id of ids) {
    const history = await one.saga.history(id)
    assert.deepEqual(history.map(({ did }) => did).toSorted(), ['handled', 'ignored', 'ignored', 'ignored'])
    assert.equal((await one.saga.get(id))?.version, 1)
  }
})

onEveryStage('a hundred completions of one instance from four processes, without an error', async (stage) => {
  const { place, replica, sent } = stage
  const one = replica()
  const names = Array.from({ length: 100 }, (_, index) => `file ${index}`)
  await handled(one, started('s1'), saved('s1', names))
  const completions = names.map((name) => parsed('s1', name))
  // Each of them at two processes: at least once is more than once.
  const shares = Array.from({ length: PROCESSES }, (_, process) =>
    completions.filter((_, index) => index % PROCESSES === process || (index + 1) % PROCESSES === process),
  )
  const done = await together(place, shares)
  assertQuiet(done)
  const view = await one.saga.get('s1')
  assert.deepEqual([view?.state, view?.data.parsed.size, view?.version], ['Completed', 100, 102])
  const lines = await sent()
  assert.deepEqual([countOf(lines, 'StartParsing'), countOf(lines, 'ImportCompleted')], [100, 1])
})

onEveryStage('a process that dies before the commit has sent nothing', async ({ place, replica, sent }) => {
  const one = replica()
  await handled(one, started('s1'))
  const late = saved('s1', ['a', 'b'])
  await killed(place, 'before_commit', { messages: [late], deliver: false })
  assert.deepEqual([await stateOf(one, 's1'), await sent()], ['Uploading', []])
  await handled(one, { ...late, deliveries: 2 })
  assert.deepEqual([await stateOf(one, 's1'), (await sent()).length], ['Parsing', 2])
})

onEveryStage('a process that dies after the commit has sent everything', async ({ place, replica, sent }) => {
  const one = replica()
  const late = saved('s1', ['a', 'b'])
  await killed(place, 'after_commit', { messages: [late], deliver: false })
  assert.deepEqual([await stateOf(one, 's1'), (await sent()).length], ['Parsing', 2])
  assert.equal((await one.saga.handle({ ...late, deliveries: 2 })).kind, 'duplicate')
  assert.equal((await sent()).length, 2)
})

onEveryStage('a timeout whose process died is delivered by another one, once', async ({ place, replica }) => {
  const one = replica()
  await handled(one, started('s1'))
  await place.advance(61 * MINUTE)
  const worker = startWorker(place, 'doomed', 'in_timeout')
  await worker.heard('ready')
  worker.order({ messages: [], deliver: true } satisfies Order)
  await worker.heard('in_timeout')
  worker.signal('SIGKILL')
  await worker.ended
  await place.forgotten('doomed')
  assert.equal(await one.saga.upkeep.deliver(), 0, 'it is taken until its lease is over')
  await place.advance(2 * MINUTE)
  assert.equal(await one.saga.upkeep.deliver(), 1)
  assert.deepEqual([await stateOf(one, 's1'), await pendingRows(place, one)], ['Error', 0])
})

async function killed(place: Place, dies: NonNullable<WorkerTask['dies']>, order: Order): Promise<void> {
  const worker = startWorker(place, 'doomed', dies)
  await worker.heard('ready')
  worker.order(order)
  const { signal, complaints } = await worker.ended
  assert.equal(signal, 'SIGKILL', complaints)
  await place.forgotten('doomed')
}

async function pendingRows({ store }: Place, { saga }: Replica): Promise<number> {
  const rows = await sqlOf(store).query('select token from onceonly_saga_pending where saga = ?', [saga.name])
  return rows.length
}

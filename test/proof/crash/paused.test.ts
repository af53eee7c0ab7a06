import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLedger, failed, SECOND } from 'onceonly'
import type { Child } from '../../support/crew.ts'
import type { Place } from '../../support/place.ts'
import { onEveryPlace, who } from '../../support/place.ts'
import type { Answered, PausedTask, Woken } from './paused.ts'
import { LEASE_MS, pausable } from './paused.ts'

const LAPSE_MS = LEASE_MS + 6 * SECOND
const refusedEverything: Woken = {
  kind: 'woken',
  derive: 'lease_over',
  attach: 'lease_over',
  aborted: true,
}

/** A worker in the middle of its effect, stopped; its own lease is over in real time, and at the store. */
async function stopped(place: Place, effect: PausedTask['effect'], key: string): Promise<Child> {
  const task: PausedTask = { address: place.address, effect, key, effects: join(place.folder, 'effects') }
  const child = place.crew.start({ file: import.meta.resolve('./paused.ts'), task })
  await child.heard('inside')
  await place.pause(child)
  // Its order waits in the pipe, so that it proceeds as soon as it is resumed.
  child.order('proceed')
  await sleep(LEASE_MS + 100)
  await place.advance(LAPSE_MS)
  return child
}

onEveryPlace('a worker paused past its lease starts nothing more, and the winner’s outcome stays', async (place) => {
  const child = await stopped(place, 'repeatable', 'k')
  const once = createLedger({ store: place.store, background: false })
  const operation = once.operation(pausable('repeatable'))
  const winner = await operation.execute(who('k'), 1, ({ attemptNumber, effectKey }) => {
    appendFileSync(join(place.folder, 'effects'), `k ${effectKey}\n`)
    return `attempt ${attemptNumber}`
  })
  assert.deepEqual(winner, { kind: 'executed', value: 'attempt 2' })
  child.signal('SIGCONT')
  assert.deepEqual(await child.heard('woken'), refusedEverything)
  assert.equal((await child.heard<Answered>('answered')).how, 'lease_lost')
  const view = await once.get({ ...who('k'), operation: 'paused.repeatable' })
  assert.ok(view?.record.state === 'succeeded' && view.record.outcome.data === '"attempt 2"')
  assert.equal(view.record.pointer, null)
  assert.ok(view.record.history.some(({ what, attempt }) => what === 'superseded' && attempt === 1))
  assert.deepEqual(await operation.execute(who('k'), 1, () => assert.fail('again')), {
    kind: 'replayed',
    value: 'attempt 2',
  })
  const lines = (await readFile(join(place.folder, 'effects'), 'utf8')).trim().split('\n')
  assert.equal(lines.length, 2)
  assert.equal(new Set(lines).size, 1, 'the provider sees one effect key')
  await once.stop()
})

onEveryPlace('the resolution of a paused external effect by an operator outranks its late settle', async (place) => {
  const child = await stopped(place, 'external', 'k')
  const once = createLedger({ store: place.store, background: false })
  const identity = { ...who('k'), operation: 'paused.external' }
  await once.upkeep.reconcile()
  assert.equal((await once.get(identity))?.record.state, 'unknown')
  await once.resolve(identity, failed(new Error('the bank says no')), { by: 'ann' })
  child.signal('SIGCONT')
  assert.deepEqual(await child.heard('woken'), refusedEverything)
  assert.equal((await child.heard<Answered>('answered')).how, 'lease_lost')
  assert.equal((await once.get(identity))?.record.state, 'failed_terminal')
  await once.stop()
})

onEveryPlace('a paused external effect that no other process resolved may still settle', async (place) => {
  const child = await stopped(place, 'external', 'k')
  const once = createLedger({ store: place.store, background: false })
  const operation = once.operation(pausable('external'))
  const asked = await operation.execute(who('k'), 1, () => assert.fail('a second external effect'))
  assert.ok(asked.kind === 'refused' && asked.error.code === 'outcome_unknown')
  child.signal('SIGCONT')
  assert.deepEqual(await child.heard('woken'), refusedEverything)
  assert.equal((await child.heard<Answered>('answered')).how, 'executed')
  assert.deepEqual(await operation.execute(who('k'), 1, () => assert.fail('again')), {
    kind: 'replayed',
    value: 'late',
  })
  await once.stop()
})

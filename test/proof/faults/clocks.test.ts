import assert from 'node:assert/strict'
import { join } from 'node:path'
import { createLedger, HOUR, MINUTE, SECOND, succeeded } from 'onceonly'
import type { Address, Place } from '../../support/place.ts'
import { onEveryPlace, onPlace, openStore, who } from '../../support/place.ts'
import type { SkewedReport, SkewedTask } from './skewed.ts'
import { plain } from './skewed.ts'

const never = () => assert.fail('the effect ran again')
const CALL = { timeoutMs: MINUTE }
const skews = { 'an hour ahead': HOUR, 'an hour behind': -HOUR }

function startSkewed(place: Place, address: Address, skewMs: number, long: boolean) {
  const task: SkewedTask = { address, long }
  return place.crew.start({
    file: import.meta.resolve('./skewed.ts'),
    task,
    before: [import.meta.resolve('./skew.ts')],
    env: { ONCEONLY_TEST_SKEW_MS: String(skewMs) },
  })
}

for (const [skew, skewMs] of Object.entries(skews)) {
  onEveryPlace(`a host whose wall clock is ${skew} and jumps changes nothing`, async (place) => {
    const once = createLedger({ store: place.store, background: false })
    const operation = once.operation(plain)
    const mine = await operation.claim(who('theirs'), 1)
    assert.ok(mine.kind === 'first_attempt')
    const child = startSkewed(place, place.address, skewMs, true)
    const report = await child.heard<SkewedReport>('report')
    child.signal('SIGKILL')
    await child.ended
    assert.ok(Math.abs(report.wallMs - Date.now() - skewMs) < MINUTE, 'its clock was as right as ours')
    assert.equal(report.long, 'executed ran through with 1 key')
    assert.equal(report.theirs, 'in_progress')
    assert.equal(report.kept, 'executed kept')
    assert.deepEqual(
      report.events.filter((kind) => /^(lapsed|swept|lease)/.test(kind)),
      [],
    )
    // Its records carry the store's time.
    const now = await place.store.clock.now(CALL)
    for (const key of ['kept', 'abandoned']) {
      const view = await once.get({ ...who(key), operation: 'plain' })
      assert.ok(
        Math.abs((view?.record.claimedAt ?? 0) - now) < MINUTE,
        `${key} was claimed at ${view?.record.claimedAt}`,
      )
    }
    // Our own lease is still ours.
    await mine.lease.settle(succeeded('mine'))
    // The lease that it left behind lapses by the store's time: not before, and not an hour later.
    await place.advance(20 * SECOND)
    const early = await operation.execute(who('abandoned'), 1, never)
    assert.ok(early.kind === 'refused' && early.error.code === 'in_progress')
    await place.advance(16 * SECOND)
    assert.deepEqual(await operation.execute(who('abandoned'), 1, ({ attemptNumber }) => attemptNumber), {
      kind: 'executed',
      value: 2,
    })
    // What it recorded expires by the store's time.
    await place.advance(9 * MINUTE)
    assert.deepEqual(await operation.execute(who('kept'), 1, never), { kind: 'replayed', value: 'kept' })
    await place.advance(1 * MINUTE)
    assert.deepEqual(await createFresh(place), { kind: 'executed', value: 'anew' })
    await once.stop()
  })

  onPlace('sqlite', `a file that was made by a host ${skew} has one time for every process`, async (place) => {
    const address: Address = { kind: 'sqlite', path: join(place.folder, 'theirs.db') }
    const child = startSkewed(place, address, skewMs, false)
    await child.heard<SkewedReport>('report')
    const { store, close } = openStore(address)
    const once = createLedger({ store, background: false })
    const operation = once.operation(plain)
    assert.deepEqual(await operation.execute(who('kept'), 1, never), { kind: 'replayed', value: 'kept' })
    await once.upkeep.reconcile()
    const held = await operation.execute(who('abandoned'), 1, never)
    assert.ok(held.kind === 'refused' && held.error.code === 'in_progress')
    child.signal('SIGKILL')
    await child.ended
    await store.clock.advance(36 * SECOND, CALL)
    assert.equal((await operation.execute(who('abandoned'), 1, () => 'freed')).kind, 'executed')
    await once.stop()
    await close()
  })
}

/** Without the cache of a ledger that has just replayed it. */
async function createFresh(place: Place) {
  const once = createLedger({ store: place.store, background: false })
  const answer = await once.operation(plain).execute(who('kept'), 1, () => 'anew')
  await once.stop()
  return answer
}

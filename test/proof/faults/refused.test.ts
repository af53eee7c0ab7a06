import assert from 'node:assert/strict'
import type { LedgerEvent } from 'onceonly'
import { createLedger, final, isOnceError, MINUTE, OnceError } from 'onceonly'
import type { Request } from '../../../src/ledger/core/request.ts'
import type { CrashStore } from '../../support/place.ts'
import { onEveryPlace, who } from '../../support/place.ts'

const never = () => assert.fail('the effect ran again')

/** A store that cannot hold the users' words, as a database of another encoding cannot. */
function wordless(store: CrashStore): CrashStore {
  const holds = (request: Request) =>
    request.kind !== 'settle' || (request.to.state === 'unknown' ? request.to.reason : request.to.outcome.data) === null
  return {
    ...store,
    claims: {
      ...store.claims,
      apply: async (request, call) => {
        if (!holds(request)) throw new OnceError('row_refused', 'No equivalent in LATIN1.')
        return await store.claims.apply(request, call)
      },
    },
  }
}

onEveryPlace('an outcome that the store cannot hold never makes the effect run again', async (place) => {
  const events: LedgerEvent[] = []
  const once = createLedger({ store: wordless(place.store), background: false, on: (event) => events.push(event) })
  const operation = once.operation({ name: 'words', effect: 'repeatable' })
  // The caller has its result: it happened.
  assert.equal(await operation.run(who('k'), 1, () => 'sent'), 'sent')
  await place.advance(MINUTE)
  // It was recorded as far as it could be, so a replay says so; a lease that lapsed would have run it again.
  await assert.rejects(operation.run(who('k'), 1, never), (error) => isOnceError(error, 'outcome_not_stored'))
  assert.ok(events.some(({ kind }) => kind === 'outcome_not_stored'))
  // A failure is known without its words, too.
  const fails = () => operation.run(who('f'), 1, () => Promise.reject(final(new Error('no'))))
  await assert.rejects(fails, (error) => isOnceError(error, 'effect_failed'))
  await assert.rejects(operation.run(who('f'), 1, never), (error) => isOnceError(error, 'effect_failed'))
  await once.stop()
})

onEveryPlace('a `classify` that throws itself proves nothing: the outcome is unknown, at once', async (place) => {
  const once = createLedger({ store: place.store, background: false })
  const operation = once.operation({
    name: 'clumsy',
    effect: 'external',
    classify: (error) => ((error as { deep: { code: string } }).deep.code === 'X' ? 'not_done' : 'ambiguous'),
  })
  const answer = await operation.execute(who('k'), 1, () => {
    throw new Error('from the effect')
  })
  assert.ok(answer.kind === 'refused' && answer.error.code === 'outcome_unknown')
  assert.equal((answer.error.cause as Error).message, 'from the effect')
  assert.equal((await once.get({ ...who('k'), operation: 'clumsy' }))?.record.state, 'unknown')
  // What cannot even be looked at is recorded, too.
  const strange = Object.create(null) as Error
  Object.defineProperty(strange, 'message', { value: Object.create(null) })
  const second = await operation.execute(who('strange'), 1, () => {
    throw strange
  })
  assert.ok(second.kind === 'refused' && second.error.code === 'outcome_unknown')
  assert.equal((await once.get({ ...who('strange'), operation: 'clumsy' }))?.record.state, 'unknown')
  await once.stop()
})

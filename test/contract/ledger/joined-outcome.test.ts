import assert from 'node:assert/strict'
import { createHeld, onEveryStore, who } from '../../support/ledger/worlds.ts'

onEveryStore('a duplicate that waited gets no more than the record keeps', async ({ once }) => {
  const held = createHeld<string>()
  const secret = once.operation({ name: 'secret', effect: 'repeatable', keep: 'outcome' })
  const first = secret.execute(who('k'), 1, held.effect)
  await held.begun
  const twin = secret.execute(who('k'), 1, () => assert.fail('the effect ran again'))
  held.finish('for the first caller only')
  assert.deepEqual(await first, { kind: 'executed', value: 'for the first caller only' })
  assert.deepEqual(await twin, { kind: 'joined', value: undefined })
})

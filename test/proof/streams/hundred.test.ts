import assert from 'node:assert/strict'
import { test } from 'node:test'
import type * as Form from '../../../lab/streams/form.ts'
import { apart } from '../apart/apart.ts'

test('a hundred clients in five regions, partitions, half a minute offline, a slow link, concurrent replies: all see all', async () => {
  const module = import.meta.resolve('../../../lab/streams/form.ts')
  const { failure, tally, lines } = await apart<typeof Form, 'runSeed'>(module, 'runSeed', 1, {
    short: false,
    lines: 60,
  })
  assert.equal(failure, null, lines.join('\n'))
  // A simulation in which nothing happens proves nothing.
  assert.ok(tally.accepted > 300 && tally.absences >= 25 && tally.moves > 0 && tally.regionCrashes > 0)
})

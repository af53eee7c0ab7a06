import assert from 'node:assert/strict'
import { test } from 'node:test'
import { arenaKinds, skipArena } from './arena.ts'
import { race } from './race.ts'

const IDENTITIES = 100

for (const kind of arenaKinds) {
  test(`four processes race for a hundred identities on ${kind}`, { skip: skipArena(kind) }, async (t) => {
    const attemptsPerProcess = kind === 'redis' ? 250 : 500
    const result = await race({ kind, processes: 4, attemptsPerProcess, identities: IDENTITIES })
    t.diagnostic(JSON.stringify(result))
    // They did race: processes joined or replayed what another one had done, and failed attempts were run again.
    assert.ok((result.counts['replayed'] ?? 0) > IDENTITIES, 'replays')
    assert.ok((result.counts['not_done'] ?? 0) > 0, 'attempts that failed before their effect')
    assert.ok(result.events > 4 * IDENTITIES, 'calls to the store')
  })
}

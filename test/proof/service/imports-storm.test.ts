import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { inEveryWorld } from '../../support/service/imports/imports.ts'
import { runStorm } from './imports/storm.ts'

/** Past any lease of a relay, of the bus and of a record. */
const LEASE_MS = 90_000

inEveryWorld('a storm of imports', (open) => {
  test('uploads and notifications in any order, copies everywhere, servers killed: one command per file', async () => {
    const cluster = await open(3)
    const figures = await runStorm(cluster, { uploads: 24, uploadsPerKill: 8, skipMs: LEASE_MS })
    assert.equal(figures.searches, 12)
    assert.ok(figures.kills > 0)
    await until('nothing is left in the outbox', async () => {
      const [row] = await cluster.sql<{ n: number }>('select count(*) as n from onceonly_outbox_rows')
      return Number(row?.n) === 0
    })
  })
})

import assert from 'node:assert/strict'
import { createAdmin } from 'onceonly/admin'
import { createCommands } from 'onceonly/admin/commands'
import { createConsole } from 'onceonly/console'
import { createPrometheusMeter, createTelemetry } from 'onceonly/telemetry'
import { onEveryStore } from '../../../support/ledger/worlds.ts'

const actor = { by: 'ada', via: 'test' }
const viewer = { role: 'viewer', actor } as const

onEveryStore('what a server counts is kept for a day, and another one reads it', async ({ world, once: ledger }) => {
  const admin = createAdmin({ store: world.store, ledger })
  const commands = createCommands({ admin })
  assert.equal((await commands.run('history', {}, viewer)).points.length, 60, 'an empty store has points, too')
  const meter = createPrometheusMeter()
  const telemetry = createTelemetry({ meter, standing: admin.standing })
  const tokens = { operator: 'operator-token', viewer: null, chosen: true }
  const console = createConsole({ admin, meter, tokens, localOnly: '' })
  try {
    for (const durationMs of [4, 4, 400]) telemetry.request({ operation: 'pay', outcome: 'first', durationMs })
    const url = '/api/console/history?range=6h'
    const headers = { authorization: 'Bearer operator-token' }
    const asked = { method: 'GET', url, headers, remoteAddress: '', clientAddress: '', isEncrypted: false }
    const answer = await console.answer({ ...asked, body: async () => undefined })
    assert.equal(answer.kind, 'whole')
    const points = answer.kind === 'whole' ? pointsIn(answer.answer.body) : []
    assert.equal(points.length, 72)
    const { count, mean, p50, p99 } = points.at(-1)?.latencyMs['request'] ?? { count: 0, mean: 0, p50: 0, p99: 0 }
    assert.equal(count, 3)
    assert.equal(Math.round(mean), 136)
    assert.ok(p50 < 5 && p99 > 250 && p99 <= 500, `${p50} ${p99}`)
  } finally {
    console.stop()
  }
  const line = { counts: { claims: 9 }, latencies: {}, gauges: {} }
  await admin.history.put('another', { ...line, at: Date.now() - 60_000 })
  const kept = await admin.history.since(0)
  assert.equal(
    kept.reduce((sum, { counts }) => sum + (counts['claims'] ?? 0), 0),
    9,
  )
})

function pointsIn(body: Uint8Array) {
  const { points } = JSON.parse(Buffer.from(body).toString()) as {
    readonly points: readonly {
      readonly latencyMs: Readonly<Record<string, { count: number; mean: number; p50: number; p99: number }>>
    }[]
  }
  return points
}

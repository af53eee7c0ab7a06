import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../testing/until.ts'
import type { FrameFormat } from '../protocol/codec.ts'
import { follow, openRegion, wired } from './test-peer.ts'

for (const format of ['json', 'binary'] satisfies FrameFormat[]) {
  test(`with small bounds of bytes, all that was said before and after comes as ${format}`, async (context) => {
    const { region } = openRegion({ bounds: { aheadBytes: 400 } })
    context.after(() => region.stop())
    const said = Array.from({ length: 40 }, (_, n) => `a text of some length, which is number ${n}`)
    const say = (from: number, to: number) =>
      Promise.all(said.slice(from, to).map((text) => region.publish('room', text, { id: text })))
    await say(0, 30)
    const bounds = { aheadBytes: 400, reconnectBaseMs: 2, reconnectCapMs: 20 }
    const { client, seen } = await follow(region, { transport: wired(() => region, format), bounds })
    context.after(() => client.stop())
    await until('what was said before', () => seen.length === 30)
    await say(30, 40)
    await until('what was said after', () => seen.length === 40)
    assert.deepEqual(
      seen.map(({ body }) => body),
      said,
    )
  })
}

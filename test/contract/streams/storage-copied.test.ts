import assert from 'node:assert/strict'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type ClientTransport, createWebSocketTransport } from 'onceonly/stream'
import { createFileStorage } from 'onceonly/stream/server'
import { until } from '../../../src/testing/until.ts'
import { openWorld, textsOf } from '../../support/streams/world.ts'

const world = await openWorld()
after(() => world.end())

test('what was written offline is not taken for the messages that a copy of the storage sent under its numbers', async () => {
  const [path, copied] = [join(world.folder, 'original.place'), join(world.folder, 'copied.place')]
  const before = createFileStorage({ path })
  const first = await world.client({ storage: before })
  await first.say('before')
  await first.client.stop()
  await before.stop()
  await copyFile(path, copied)

  const network = createWebSocketTransport({ url: world.url, frames: 'json' })
  let refusals: number | null = 0
  const failing: ClientTransport = {
    connect(region, events) {
      if (refusals === null) return network.connect(region, events)
      refusals += 1
      setImmediate(() => events.closed(null, 'no network'))
      return { send() {}, close() {} }
    },
  }
  const storage = createFileStorage({ path })
  const doubts: unknown[] = []
  const original = await world.client({ storage, transport: failing, onDoubt: (all) => void doubts.push(...all) })
  const sent = await Promise.all(['mine 1', 'mine 2', 'mine 3'].map((text) => original.client.send({ text })))

  const twin = createFileStorage({ path: copied })
  const copy = await world.client({ storage: twin })
  await copy.say('theirs 1')
  await copy.say('theirs 2')
  await copy.client.stop()
  await twin.stop()

  // With every attempt it has a later generation: it is not the copy's that fences it off.
  await until('it has tried more often than the copy', () => (refusals ?? 0) >= 4)
  refusals = null
  await Promise.all(sent.map(({ accepted }) => accepted))
  const bob = await world.client()
  await until('bob saw the last', () => textsOf(bob).includes('mine 3'))
  assert.deepEqual(textsOf(bob), ['before', 'theirs 1', 'theirs 2', 'mine 1', 'mine 2', 'mine 3'])
  assert.deepEqual([original.renewed, doubts], [['fenced'], []])
  await original.client.stop()
  await storage.stop()
})

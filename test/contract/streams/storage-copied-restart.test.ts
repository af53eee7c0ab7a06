import assert from 'node:assert/strict'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type ClientTransport, createWebSocketTransport, type StreamClientOptions } from 'onceonly/stream'
import { createFileStorage } from 'onceonly/stream/server'
import { until } from '../../../src/testing/until.ts'
import { openWorld, type Participant, quick, textsOf } from '../../support/streams/world.ts'

const world = await openWorld()
after(() => world.end())

/** Starts a client on a file, lets it work, and stops it: what it has kept is all that is left of it. */
async function run<T>(
  path: string,
  options: Partial<StreamClientOptions>,
  work: (participant: Participant) => Promise<T>,
): Promise<T> {
  const storage = createFileStorage({ path })
  const participant = await world.client({ storage, ...options })
  const answer = await work(participant)
  await participant.client.stop()
  await storage.stop()
  return answer
}

/** Writes without a network. With every attempt the client has a later generation, which the other's does not fence off. */
function offline(path: string, room: string, texts: readonly string[]): Promise<number> {
  let attempts = 0
  const transport: ClientTransport = {
    connect(_region, events) {
      attempts += 1
      setImmediate(() => events.closed(null, 'no network'))
      return { send() {}, close() {} }
    },
  }
  return run(path, { room, transport }, async ({ client }) => {
    for (const text of texts) await client.send({ text })
    await until('it has tried more often than the other will', () => attempts >= 4)
    return attempts
  })
}

async function shown(room: string, last: string): Promise<readonly string[]> {
  const bob = await world.client({ room })
  await until(`${last} is shown`, () => textsOf(bob).includes(last))
  return textsOf(bob)
}

function textOf({ body }: { readonly body: unknown }): string {
  return (body as { text: string }).text
}

test('after a restart, what a copy of the storage sent under the same numbers accepts nothing of the original', async () => {
  const room = 'restarted'
  const [path, copied] = [join(world.folder, 'restarted.place'), join(world.folder, 'restarted-copy.place')]
  await run(path, { room }, ({ say }) => say('before'))
  await copyFile(path, copied)
  await offline(path, room, ['mine 1', 'mine 2', 'mine 3'])
  await run(copied, { room }, async ({ say }) => {
    await say('theirs 1')
    await say('theirs 2')
  })

  const doubts: string[] = []
  const onDoubt: StreamClientOptions['onDoubt'] = (all) => doubts.push(...all.map(textOf))
  await run(path, { room, onDoubt }, async ({ client, renewed, say }) => {
    await until('all are settled', () => client.pending === 0)
    await say('after')
    assert.deepEqual(renewed, ['fork'])
  })
  assert.deepEqual(doubts, ['mine 1', 'mine 2', 'mine 3'])
  const texts = await shown(room, 'after')
  // The third has a number that the copy did not use: it may have been accepted before the client gave its name up.
  assert.deepEqual(
    texts.filter((text) => text !== 'mine 3'),
    ['before', 'theirs 1', 'theirs 2', 'after'],
  )
})

test('an acknowledgement counts for what was compared, not for all that a copy sent', async () => {
  const room = 'compared'
  const [path, copied] = [join(world.folder, 'compared.place'), join(world.folder, 'compared-copy.place')]
  await run(path, { room }, ({ say }) => say('before'))
  await offline(path, room, ['of both'])
  await copyFile(path, copied)
  await offline(path, room, ['mine 2', 'mine 3'])
  await run(copied, { room }, ({ say }) => say('theirs 2'))

  const doubts: string[] = []
  const onDoubt: StreamClientOptions['onDoubt'] = (all) => doubts.push(...all.map(textOf))
  // One at a time, so that the first is acknowledged before the second leaves.
  await run(path, { room, onDoubt, bounds: { ...quick, sendWindowBytes: 1 } }, async ({ client, renewed, say }) => {
    await until('all are settled', () => client.pending === 0)
    await say('after')
    assert.deepEqual(renewed, ['fork'])
  })
  assert.deepEqual(doubts, ['mine 2', 'mine 3'])
  assert.deepEqual(await shown(room, 'after'), ['before', 'of both', 'theirs 2', 'after'])
})

test('a message that was lost on its way is not taken for the one that a copy sent instead', async () => {
  const room = 'lost'
  const [path, copied] = [join(world.folder, 'lost.place'), join(world.folder, 'lost-copy.place')]
  await run(path, { room }, ({ say }) => say('before'))
  await copyFile(path, copied)

  const network = createWebSocketTransport({ url: world.url, frames: 'json' })
  let state: 'losing' | 'away' | 'well' = 'losing'
  let attempts = 0
  const transport: ClientTransport = {
    connect(region, events) {
      attempts += 1
      if (state !== 'away') {
        const link = network.connect(region, events)
        return {
          close: () => link.close(),
          send(text) {
            if (state === 'well' || !String(text).includes('mine')) return link.send(text)
            state = 'away'
            link.close()
            setImmediate(() => events.closed(null, 'lost'))
          },
        }
      }
      setImmediate(() => events.closed(null, 'no network'))
      return { send() {}, close() {} }
    },
  }
  const doubts: string[] = []
  const onDoubt: StreamClientOptions['onDoubt'] = (all) => doubts.push(...all.map(textOf))
  await run(path, { room, transport, onDoubt }, async ({ client, renewed }) => {
    const { accepted } = await client.send({ text: 'mine' })
    await until('it was lost', () => state === 'away')
    const before = attempts
    const copies = await offline(copied, room, [])
    await run(copied, { room }, ({ say }) => say('theirs'))
    await until('it has tried more often than the copy', () => attempts >= before + copies + 4)
    state = 'well'
    await assert.rejects(accepted, { code: 'outcome_unknown' })
    assert.deepEqual(renewed, ['fork'])
  })
  assert.deepEqual(doubts, ['mine'])
  assert.deepEqual(await shown(room, 'theirs'), ['before', 'theirs'])
})

test('a restart after lost acknowledgements sends everything once, and reports nothing as unknown', async () => {
  const room = 'normal'
  const path = join(world.folder, 'normal.place')
  const network = createWebSocketTransport({ url: world.url, frames: 'json' })
  const deaf: ClientTransport = {
    connect: (region, events) =>
      network.connect(region, {
        ...events,
        received: (text) => JSON.parse(String(text)).kind === 'ack' || events.received(text),
      }),
  }
  await run(path, { room, transport: deaf }, async (first) => {
    for (const text of ['one', 'two', 'three']) await first.client.send({ text })
    await until('all were accepted', () => textsOf(first).length === 3)
    assert.equal(first.client.pending, 3)
  })
  const doubts: unknown[] = []
  await run(path, { room, onDoubt: (all) => doubts.push(...all) }, async ({ client, renewed, say }) => {
    await say('four')
    assert.deepEqual([client.pending, renewed, doubts], [0, [], []])
  })
  assert.deepEqual(await shown(room, 'four'), ['one', 'two', 'three', 'four'])
})

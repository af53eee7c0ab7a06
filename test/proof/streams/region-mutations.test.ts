import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMemoryRoomLog } from '../../../src/streams/log/memory-log.ts'
import { decodeServerFrame } from '../../../src/streams/protocol/decode.ts'
import { type ClientFrame, closeCodes, type ServerFrame } from '../../../src/streams/protocol/protocol.ts'
import type * as Regions from '../../../src/streams/server/region.ts'
import * as regions from '../../../src/streams/server/region.ts'
import { until } from '../../../src/testing/until.ts'
import { importMutated, type Mutant } from '../simulation/mutate.ts'

type Rule = Omit<Mutant, 'file'>

const publishing: readonly Rule[] = [
  { name: 'all ids are one', find: 'sha256Base64Url(id).slice', replace: "sha256Base64Url('').slice" },
  {
    name: 'publishers share their ids',
    find: 'publisherName(from, ofId)',
    replace: "publisherName('server', ofId)",
  },
  {
    name: 'a reply is not part of the message',
    find: 'canonicalOf([frame.body, frame.replyTo])',
    replace: 'canonicalOf([frame.body])',
  },
  {
    name: 'a message comes before what must come first',
    find: 'await reached(room, seen, over)',
    replace: '',
  },
  {
    name: 'the causes that are given do not count',
    find: 'const seen = given ?? room.position',
    replace: 'const seen = room.position',
  },
]

const rooms: readonly Rule[] = [
  {
    name: 'a room that refuses ends the other rooms of the connection',
    find: 'if (forAll.has(why)) return end(why, reason)',
    replace: 'return end(why, reason)',
  },
  {
    name: 'a connection has any number of rooms',
    find: 'if (sessions.size < bounds.connectionRooms) return',
    replace: 'if (true) return',
  },
  {
    name: 'channels may be left out',
    find: "if (channel !== next) return end('badFrame', `the next channel is ${next}`)",
    replace: '',
  },
  {
    name: 'what comes for a session that is over ends the connection',
    find: "if (channel >= next || frame.kind === 'hello') enter(channel, frame, bytes)",
    replace: 'enter(channel, frame, bytes)',
  },
  {
    name: 'who leaves a room stays in it',
    find: '      session.closed()\n      sessions.delete(channel)',
    replace: '      sessions.delete(channel)',
  },
]

function open({ createStreamRegion }: typeof Regions) {
  const log = createMemoryRoomLog({ region: 'eu', nowMs: () => performance.now() })
  return createStreamRegion({ region: 'eu', log, bounds: { connectionRooms: 2 } })
}

async function publishes(module: typeof Regions): Promise<void> {
  const region = open(module)
  try {
    const say = (body: unknown, id: string, more = {}) => region.publish('room', body, { id, ...more })
    const first = await say('one', 'a')
    assert.deepEqual(await say('one', 'a'), { ...first, duplicate: true })
    assert.equal((await say('two', 'b')).duplicate, false)
    assert.equal((await say('one', 'a', { from: 'other' })).duplicate, false)
    await assert.rejects(say('two', 'a'), { code: 'key_reused' })
    await assert.rejects(say('one', 'a', { replyTo: first.identity }), { code: 'key_reused' })
    await assert.rejects(say('late', 'c', { seen: { 'us.1': 1 }, timeoutMs: 50 }), { code: 'retry_later' })
    const { place } = await say('after', 'd', { seen: { 'eu.1': 1 } })
    assert.equal(place?.n, 4)
  } finally {
    await region.stop()
  }
}

async function carriesRooms(module: typeof Regions): Promise<void> {
  const region = open(module)
  const frames: ServerFrame[] = []
  let closed: number | null = null
  const connection = (authorize: (room: string) => string | null) =>
    region.connect(
      {
        send(data) {
          const read = decodeServerFrame(String(data))
          if (read.kind === 'frame') frames.push(read.frame)
        },
        close: (code) => void (closed = code),
        bufferedBytes: 0,
      },
      { authorize: ({ room }) => authorize(room) },
    )
  const link = connection((room) => (room === 'closed' ? 'no' : null))
  const say = (frame: ClientFrame, channel: number) => link.received(JSON.stringify({ ...frame, channel }))
  const hello = (room: string, channel: number) =>
    say({ kind: 'hello', version: 1, room, client: 'ann', epoch: 1, generation: 1, instance: 'i' }, channel)
  const ended = () => frames.flatMap((frame) => (frame.kind === 'ended' ? [frame.code] : []))
  const welcomes = () => frames.filter(({ kind }) => kind === 'welcome').length
  try {
    hello('closed', 0)
    await until('one is refused', () => closed !== null || ended().length === 1)
    hello('lobby', 1)
    hello('news', 2)
    await until('two are open', () => closed !== null || welcomes() === 2)
    // What was on its way to the first one.
    say({ kind: 'credit', taken: 0 }, 0)
    hello('third', 3)
    await until('the third is too many', () => closed !== null || ended().length === 2 || welcomes() === 3)
    assert.deepEqual([closed, ended(), welcomes()], [null, [closeCodes.notAllowed, closeCodes.notAllowed], 2])
    say({ kind: 'leave' }, 1)
    assert.equal(region.sessions, 1)
    hello('far', 9)
    assert.equal(closed, closeCodes.badFrame)
  } finally {
    await region.stop()
  }
}

for (const [file, rules, works] of [
  ['src/streams/server/publish.ts', publishing, publishes],
  ['src/streams/server/connection.ts', rooms, carriesRooms],
] as const) {
  test(`${file} keeps its rules`, () => works(regions))
  for (const rule of rules) {
    test(`it is noticed when ${rule.name}`, async () => {
      const mutated = await importMutated<typeof Regions>('src/streams/server/region.ts', { ...rule, file })
      await assert.rejects(works(mutated))
    })
  }
}

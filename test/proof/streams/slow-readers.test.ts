import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { WebSocket } from 'ws'
import { streamProtocols } from '../../../src/streams/client/websocket.ts'
import { until } from '../../../src/testing/until.ts'
import { participate, ROOM } from '../../support/streams/world.ts'
import type { Held } from './slow-process.ts'

const CLIENTS = 50
const BYTES_EACH_MOST = 100_000
/** More for each of them than any buffer of a network takes: about six megabytes. */
const MESSAGES = 400
/** Until everything is loaded, and was used once. */
const WARM_MESSAGES = 64
const BODY = 'x'.repeat(16_000)

test('a client that stops reading costs the server less than 100 KB, whatever the others say', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-slow-'))
  const program = fileURLToPath(import.meta.resolve('./slow-process.ts'))
  const child = fork(program, [join(folder, 'stream.db')], {
    execArgv: ['--conditions=onceonly-source', '--expose-gc'],
  })
  const [port] = (await once(child, 'message')) as [number]
  const url = `ws://127.0.0.1:${port}/socket`
  const held = async (): Promise<Held> => {
    child.send('held')
    return ((await once(child, 'message')) as [Held])[0]
  }
  const talker = await participate(() => url, { regions: ['eu'] })
  const sockets: WebSocket[] = []
  try {
    for (let n = 0; n < CLIENTS; n++) sockets.push(await enter(url, `reader-${n}`))
    const talk = async (messages: number) => {
      const before = talker.seen.length
      const sent = []
      for (let n = 0; n < messages; n++) sent.push((await talker.client.send({ text: BODY })).accepted)
      await Promise.all(sent)
      await until('the talker saw it all', () => talker.seen.length === before + messages)
    }
    await talk(WARM_MESSAGES)
    const reading = await held()
    for (const socket of sockets) socket.pause()
    await talk(MESSAGES)
    const stalled = await held()
    assert.equal(stalled.sessions, CLIENTS + 1)
    const grown = (member: keyof Held) => Math.round((stalled[member] - reading[member]) / CLIENTS)
    context.diagnostic(
      `bytes for each: heap ${grown('heapBytes')}, external ${grown('externalBytes')}, rss ${grown('rssBytes')}`,
    )
    assert.ok(grown('heapBytes') + grown('externalBytes') < BYTES_EACH_MOST)
  } finally {
    for (const socket of sockets) socket.terminate()
    await talker.client.stop()
    const gone = once(child, 'exit')
    child.disconnect()
    await gone
    await rm(folder, { recursive: true, force: true })
  }
})

/** Follows the room from its end; reads until it is paused. */
async function enter(url: string, client: string): Promise<WebSocket> {
  const socket = new WebSocket(url, streamProtocols.json)
  socket.on('error', () => {})
  await once(socket, 'open')
  const frames = [
    { kind: 'hello', version: 1, room: ROOM, client, epoch: 1, generation: 1, instance: 'i' },
    { kind: 'resume', position: {}, ordered: 0, pendingFrom: 1, acknowledged: null, previousRegion: null },
  ]
  for (const frame of frames) socket.send(JSON.stringify(frame))
  await once(socket, 'message')
  return socket
}

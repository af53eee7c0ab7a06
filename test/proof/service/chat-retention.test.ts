import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import { until } from '../../../src/testing/until.ts'
import { openChatService, sayMany, talker } from '../../support/chat.ts'
import { demoKey } from '../../support/service/openapi/opened.ts'

const DAY_MS = 24 * 60 * 60 * 1_000

/** What a client is shown that comes to a room for the first time. */
async function read(url: string): Promise<readonly string[]> {
  const shown: string[] = []
  const client = await createStreamClient({
    room: 'days',
    regions: ['frankfurt'],
    transport: createWebSocketTransport({
      url: (region) => `${url.replace('http', 'ws')}/chat/socket?region=${region}`,
      token: () => demoKey,
    }),
    mode: 'at-least-once',
    from: 'start',
    receiver: {
      message: ({ body }) => void shown.push((body as { text: string }).text),
      reset: ({ why }) => void shown.push(`(${why})`),
    },
  })
  // Its own message comes last, and says that everything before it has come.
  await (await client.send({ text: 'end' })).accepted
  await until('everything has come', () => shown.at(-1) === 'end')
  await client.stop()
  return shown.slice(0, -1)
}

/** What a region has of the room, read without entering it. */
async function kept(url: string): Promise<readonly string[]> {
  const headers = { authorization: `Bearer ${demoKey}` }
  const response = await fetch(`${url}/api/chat/rooms/days/messages?region=frankfurt`, { headers })
  const { messages } = (await response.json()) as { messages: readonly { body: { text: string } }[] }
  return messages.map(({ body }) => body.text)
}

test('a room keeps its messages for days and not for minutes, and then says that they are gone', async () => {
  await using service = await openChatService({
    ONCEONLY_RETAIN_CHAT_DAYS: '3',
    ONCEONLY_RETAIN_CHAT_MESSAGES: '3',
    ONCEONLY_SWEEP_EVERY_MS: '100',
  })
  const { url } = service
  const linus = await talker(url, 'days')
  await sayMany(linus, ['one', 'two', 'three', 'four', 'five'])
  await linus.stop()
  await service.advance(2 * DAY_MS)
  await until(
    'the sweep has come',
    () => kept(url),
    (texts) => !texts.includes('one'),
  )
  assert.deepEqual(await kept(url), ['three', 'four', 'five'], 'two days old, and still there')
  assert.deepEqual(await read(url), ['(expired)', 'three', 'four', 'five'])
  await service.advance(2 * DAY_MS)
  await until(
    'the messages are past their time',
    () => kept(url),
    (texts) => !texts.includes('five'),
  )
})

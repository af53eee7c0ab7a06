import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../testing/until.ts'
import { createMemoryStorage } from '../client/memory-storage.ts'
import { follow, openRegion } from './test-peer.ts'

test('a client that shows everything again after a restart still sends after what it had read', async () => {
  const { region } = openRegion()
  const ada = await follow(region)
  for (const text of ['shall we ship?', 'today?']) await (await ada.client.send(text)).accepted
  const storage = createMemoryStorage()
  const grace = await follow(region, { storage })
  await until('grace has read it', () => grace.seen.length === 2)
  await grace.client.idle()
  await grace.client.stop()

  const again = await follow(region, { storage, again: 'replay' })
  // Before anything is delivered again, what was read is already a cause.
  const said = await again.client.send('yes, ship it')
  await said.accepted
  await until('everything was shown again', () => again.seen.length === 3)
  const reply = again.seen.find(({ body }) => body === 'yes, ship it')
  assert.deepEqual(reply?.seen, { 'eu.1': 2 })
  await again.client.idle()
  await again.client.stop()
  assert.deepEqual((await storage.load())?.position.logs, { 'eu.1': 3 }, 'the position never went back')

  const onward = await follow(region, { storage })
  await (await ada.client.send('done')).accepted
  await until('only what is new is shown', () => onward.seen.length === 1)
  assert.equal(onward.seen[0]?.body, 'done')
  await Promise.all([ada.client.stop(), onward.client.stop(), region.stop()])
})

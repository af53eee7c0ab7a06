import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Incoming } from '../protocol/exchange.ts'
import { keyedByContent } from './guard.ts'

test('a body is asked for again, not held for as long as its request waits', async () => {
  let asked = 0
  const incoming: Incoming = {
    method: 'POST',
    target: '/things',
    header: () => [],
    headers: () => [],
    body: () => ({ bytes: Buffer.from(`body ${++asked}`) }),
  }
  const keyed = await keyedByContent(incoming)
  assert.deepEqual(await keyed.body(), { bytes: Buffer.from('body 2') })
})

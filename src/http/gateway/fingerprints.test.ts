import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../ledger/core/errors.ts'
import { answerBody } from '../protocol/large-body.ts'
import { createFingerprints, type Fingerprints } from './fingerprints.ts'
import { gatewayLimits } from './limits.ts'

const text = 'x'.repeat(gatewayLimits.threadBytes)
const questionOf = (json: string, keyField: string | null = null) => ({
  contentType: 'application/json',
  contentEncoding: null,
  body: Buffer.from(json),
  shape: 1,
  keyField,
})
const large = questionOf(`{"b":1,"a":"${text}","id":"k-1"}`, 'id')
const broken = questionOf(`["${text}",]`)

async function answersAsHere(fingerprints: Fingerprints): Promise<void> {
  const asked = [fingerprints.ask(large, 'one'), fingerprints.ask(broken, 'one')]
  assert.deepEqual(await asked[0], answerBody(large))
  assert.deepEqual((await asked[0])?.key, { key: 'k-1' })
  const refused = (error: unknown) => isOnceError(error, 'bad_input') && typeof error.details['offset'] === 'number'
  await assert.rejects(asked[1] as Promise<unknown>, refused)
}

test('the thread answers what would be answered here, and small bodies are not worth the way', async () => {
  const fingerprints = createFingerprints()
  await answersAsHere(fingerprints)
  assert.equal(fingerprints.ask(questionOf('{"a":1}'), 'one'), null)
  fingerprints.stop()
})

test('without its thread, which a bundler may have left behind, it answers all the same', async () => {
  const fingerprints = createFingerprints('/nowhere/thread.js')
  await answersAsHere(fingerprints)
  await answersAsHere(fingerprints)
  fingerprints.stop()
})

test('the end of the gateway ends what is asked', async () => {
  const fingerprints = createFingerprints()
  const asked = ['one', 'one', 'two'].map((key) => fingerprints.ask(large, key) as Promise<unknown>)
  fingerprints.stop()
  for (const each of asked) await assert.rejects(each, /ending/)
})

test('a flood of large bodies does not delay those of another client', async () => {
  const fingerprints = createFingerprints()
  const order: string[] = []
  const ask = (key: string) => fingerprints.ask(large, key)?.then(() => order.push(key))
  await Promise.all([...Array.from({ length: 20 }, () => ask('flood')), ask('quiet')])
  assert.ok(order.indexOf('quiet') <= 2, order.join(' '))
  fingerprints.stop()
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import type { FormFields } from 'onceonly/run'
import { httpChannel, providers } from 'onceonly/run'
import { isVerdict } from '../../../src/ledger/core/verdict.ts'

const context = { effectKey: 'k-1', fence: 1, attemptNumber: 1, signal: AbortSignal.timeout(60_000), derive: () => 'd' }

/** A provider that takes forms only, as those of text messages do. */
async function provider(t: TestContext) {
  const seen: { readonly type: string | undefined; readonly key: string | undefined; readonly body: string }[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const { 'content-type': type, 'idempotency-key': key } = request.headers
    seen.push({ type, key: key as string | undefined, body: await text(request) })
    response.writeHead(type === 'application/x-www-form-urlencoded' ? 201 : 400).end('{"sid":"SM1"}')
  }
  const server = createServer((request, response) => void answer(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  return { seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/Messages.json` }
}

test('a provider that takes forms gets one, and a list repeats its name', async (t) => {
  const { seen, url } = await provider(t)
  const channel = httpChannel({ name: 'sms', provider: providers.twilio })
  const body = {
    To: '+4915112345678',
    From: '+15550100',
    Body: 'Grüße & mehr',
    MediaUrl: ['https://a/1', 'https://a/2'],
  }
  const sent = await channel.send({ url, body }, context)
  assert.deepEqual(sent, { status: 201, body: { sid: 'SM1' } })
  const [only] = seen
  assert.deepEqual([only?.type, only?.key], ['application/x-www-form-urlencoded', undefined])
  const form = new URLSearchParams(only?.body)
  assert.deepEqual([form.get('Body'), form.getAll('MediaUrl')], ['Grüße & mehr', ['https://a/1', 'https://a/2']])
})

test('a key goes with a form as with JSON, and every attempt has the same bytes', async (t) => {
  const { seen, url } = await provider(t)
  const channel = httpChannel({ name: 'pay', provider: providers.stripe })
  const body: FormFields = { amount: 10, currency: 'eur', confirm: true, 'metadata[order]': 'o-1' }
  for (const attemptNumber of [1, 2]) await channel.send({ url, body }, { ...context, attemptNumber })
  const bytes = 'amount=10&currency=eur&confirm=true&metadata%5Border%5D=o-1'
  assert.deepEqual(
    seen.map(({ key, body: sent }) => [key, sent]),
    [
      ['k-1', bytes],
      ['k-1', bytes],
    ],
  )
})

test('what is no form is refused before it is sent', async (t) => {
  const { seen, url } = await provider(t)
  const channel = httpChannel({ name: 'sms', provider: providers.twilio })
  // @ts-expect-error -- a form has no nested members.
  const nested = channel.send({ url, body: { to: { phone: '+49' } } }, context)
  // @ts-expect-error -- a form has names.
  const bare = channel.send({ url, body: 'Hi' }, context)
  for (const refusal of [nested, bare]) {
    await assert.rejects(refusal, (error) => isVerdict(error) && error.verdict === 'final')
  }
  assert.deepEqual(seen, [])
})

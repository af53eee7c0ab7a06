import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { type Cluster, openCluster, type TestServer } from '../../support/service/cluster.ts'

/** What is wrong with a message is found before any store is asked, so one store is enough here. */
describe('bad messages', () => {
  let cluster: Cluster
  let server: TestServer
  before(async () => {
    cluster = await openCluster('sqlite')
    server = cluster.servers[0] as TestServer
  })
  after(() => cluster[Symbol.asyncDispose]())

  const good = { recipientPhone: '+4915112345678', message: 'Hello' }
  const file = { filename: 'a.txt', contentType: 'text/plain', base64: 'aGk=' }
  const withFile = (change: object) => ({ ...good, attachments: [{ ...file, ...change }] })

  for (const [name, body, fields] of [
    ['a list', [], ['body']],
    ['a text', '"hello"', ['body']],
    ['an empty object', {}, ['recipientPhone', 'recipientEmail', 'message']],
    ['no recipient', { message: 'Hello' }, ['recipientPhone', 'recipientEmail']],
    ['recipients that are null', { ...good, recipientPhone: null }, ['recipientPhone', 'recipientEmail']],
    ['a phone without a country', { ...good, recipientPhone: '015112345678' }, ['recipientPhone']],
    ['a phone with letters', { ...good, recipientPhone: '+49151CALLME' }, ['recipientPhone']],
    ['a phone of 16 digits', { ...good, recipientPhone: '+4915112345678901' }, ['recipientPhone']],
    ['a phone that starts with a zero', { ...good, recipientPhone: '+0151123456' }, ['recipientPhone']],
    ['an empty phone, and no other recipient', { ...good, recipientPhone: '' }, ['recipientPhone', 'recipientEmail']],
    ['a phone that is a number', { ...good, recipientPhone: 4915112345678 }, ['recipientPhone']],
    ['an address without a domain', { ...good, recipientEmail: 'ann@' }, ['recipientEmail']],
    ['an address with a space', { ...good, recipientEmail: 'ann b@example.com' }, ['recipientEmail']],
    ['an address that hides a header', { ...good, recipientEmail: 'ann@example.com\r\nbcc: x' }, ['recipientEmail']],
    ['two addresses', { ...good, recipientEmail: 'a@example.com,b@example.com' }, ['recipientEmail']],
    ['an address of 255 characters', { ...good, recipientEmail: `a@${'b'.repeat(249)}.com` }, ['recipientEmail']],
    ['no text', { recipientPhone: good.recipientPhone }, ['message']],
    ['a text that is empty', { ...good, message: '' }, ['message']],
    ['a text that is a number', { ...good, message: 7 }, ['message']],
    ['a text of 10 001 characters', { ...good, message: 'x'.repeat(10_001) }, ['message']],
    ['a text with half a character', '{"recipientPhone":"+49151","message":"\\ud83d"}', ['message']],
    ['a text with a NUL', { ...good, message: 'a\0b' }, ['message']],
    ['a lead that is a number', { ...good, leadId: 7 }, ['leadId']],
    ['a lead with a NUL', { ...good, leadId: 'a\0' }, ['leadId']],
    ['an unknown channel', { ...good, channel: 'pigeon' }, ['channel']],
    ['a channel that is not configured', { ...good, channel: 'twilio' }, ['channel']],
    ['a CRM id that is half a number', { ...good, ghlContactId: 7.5 }, ['ghlContactId']],
    ['a CRM id that is blank', { ...good, hsPortalId: ' ' }, ['hsPortalId']],
    ['attachments that are no list', { ...good, attachments: file }, ['attachments']],
    ['eleven attachments', { ...good, attachments: Array.from({ length: 11 }, () => file) }, ['attachments']],
    ['an attachment that is a text', { ...good, attachments: ['a.txt'] }, ['attachments[0]']],
    ['an attachment without a name', withFile({ filename: undefined }), ['attachments[0].filename']],
    ['an attachment with a path', withFile({ filename: '../a.txt' }), ['attachments[0].filename']],
    ['an attachment of no type', withFile({ contentType: 'text' }), ['attachments[0].contentType']],
    ['an attachment without content', withFile({ base64: undefined }), ['attachments[0]']],
    ['an attachment with two contents', withFile({ url: 'https://example.com/a' }), ['attachments[0]']],
    ['an attachment that is not base64', withFile({ base64: 'äöü' }), ['attachments[0].base64']],
    ['an attachment on our disk', withFile({ base64: undefined, url: 'file:///etc/passwd' }), ['attachments[0].url']],
    ['too large attachments', withFile({ base64: Buffer.alloc(5_300_000).toString('base64') }), ['attachments']],
    [
      'everything wrong at once',
      {
        recipientPhone: 'x',
        recipientEmail: 'x',
        message: '',
        channel: 'x',
        leadId: 1,
        attachments: 1,
        hsPortalId: true,
      },
      ['recipientPhone', 'recipientEmail', 'leadId', 'channel', 'message', 'attachments', 'hsPortalId'],
    ],
  ] as const) {
    test(`${name}: 400, and every field that is wrong is named`, async () => {
      const answer = await server.send(body)
      assert.equal(answer.status, 400, answer.text)
      assert.equal(answer.headers.get('content-type'), 'application/problem+json; charset=utf-8')
      assert.deepEqual(
        answer.body.errors?.map(({ field }) => field),
        fields,
      )
    })
  }

  test('the longest text that is allowed counts characters, not bytes', async () => {
    const message = '🐘'.repeat(10_000)
    const answer = await server.send({ ...good, message })
    assert.equal(answer.status, 201)
    assert.equal(answer.body.message?.message, message)
  })

  test('a request that was refused holds no lock and no key (G6)', async () => {
    const body = { recipientPhone: '+4915199', message: 'Once it is right' }
    const attachments = [{ filename: 'a', contentType: 'nonsense', url: 'x' }]
    assert.equal((await server.send({ ...body, attachments }, { key: 'g6' })).status, 400)
    assert.equal((await server.send({ ...body, leadId: 'lead_unknown' }, { key: 'g6' })).status, 404)
    assert.equal((await server.send({ ...body, channel: 'smtp' }, { key: 'g6' })).status, 400)
    assert.equal((await server.send(body, { key: 'g6', apiKey: 'nonsense' })).status, 401)
    const sent = await server.send(body, { key: 'g6' })
    assert.deepEqual([sent.status, sent.body.duplicateOnly], [201, undefined])
    assert.equal((await cluster.sql("select 1 from messages where recipient_phone = '+4915199'")).length, 1)
  })

  for (const [name, key] of [
    ['an empty key', '""'],
    ['two keys', 'a, b'],
    ['a key that is too long', 'k'.repeat(256)],
  ] as const) {
    test(`${name} is refused, although none is needed`, async () => {
      const answer = await server.send(good, { key })
      assert.equal(answer.status, 400)
      assert.equal(answer.body.type, '/problems/idempotency-key-invalid')
    })
  }

  test('a body that is too large is refused before it is read', async () => {
    const headers = { 'content-type': 'application/json', 'content-length': 9_000_000 }
    const asking = request(`${server.url}/api/messages`, {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${server.apiKey}` },
    })
    // Only the head is sent: a server that waits for the body would never answer.
    asking.flushHeaders()
    const [response] = (await once(asking, 'response')) as [IncomingMessage]
    asking.destroy()
    assert.equal(response.statusCode, 413)
  })
})

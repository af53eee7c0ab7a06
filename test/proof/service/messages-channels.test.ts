import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { breakTable } from '../../support/service/break.ts'
import { type Cluster, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { type MailServer, startMail } from '../../support/service/messages/mail.ts'
import { type Provider, startProvider } from '../../support/service/messages/provider.ts'

/** Longer than a provider takes that answers at all, on any machine. */
const PATIENT_MS = 60_000
/** Short, where a test waits for it to pass. */
const HASTY_MS = 3_000

describe('channels', () => {
  let mail: MailServer
  let hook: Provider
  let sms: Provider
  let cluster: Cluster
  let server: TestServer
  before(async () => {
    ;[mail, hook, sms] = await Promise.all([startMail(), startProvider(), startProvider()])
    const { host } = new URL(sms.url)
    cluster = await openCluster('sqlite', {
      env: {
        ONCEONLY_SMTP_URL: mail.url,
        ONCEONLY_MAIL_FROM: 'Onceonly <sender@example.com>',
        ONCEONLY_MESSAGE_WEBHOOK_URL: `${hook.url}/hook`,
        ONCEONLY_TWILIO_URL: `http://AC1:secret@${host}/Accounts/AC1/Messages.json?From=%2B15550100`,
        ONCEONLY_SEND_TIMEOUT_MS: String(PATIENT_MS),
      },
    })
    server = cluster.servers[0] as TestServer
  })
  after(async () => {
    await cluster[Symbol.asyncDispose]()
    await Promise.all([mail, hook, sms].map((each) => each[Symbol.asyncDispose]()))
  })

  const byMail = (name: string, message: string) => ({
    channel: 'smtp',
    recipientEmail: `${name}@example.com`,
    message,
  })
  const byHook = (message: string) => ({ channel: 'webhook', recipientPhone: '+4915155', message })
  const bySms = (message: string) => ({ channel: 'twilio', recipientPhone: '+4915166', message })
  const stateOf = async (id: string) => (await server.get(`/api/messages/${id}`)).body

  const patient = async () => ({ server, [Symbol.asyncDispose]: async () => {} })

  /** A server that gives up on providers soon. It ends with its test, as it would judge the mails of others, too. */
  async function hasty() {
    const added = await cluster.add({ ONCEONLY_SEND_TIMEOUT_MS: String(HASTY_MS) })
    return { server: added, [Symbol.asyncDispose]: () => added.stop() }
  }

  test('smtp: the mail arrives with its text, its attachments, and an id of its own', async () => {
    const attachments = [
      { filename: 'a.txt', contentType: 'text/plain', base64: Buffer.from('attached').toString('base64') },
      { filename: 'b.png', contentType: 'image/png', url: 'https://example.com/b.png' },
    ]
    const { status, body } = await server.send({ ...byMail('ann', 'Dear Ann\nhow are you?'), attachments })
    assert.deepEqual([status, body.status, body.message?.channel], [201, 'sent', 'smtp'])
    const [arrived] = mail.sentTo('Dear Ann')
    assert.equal(arrived?.to, 'ann@example.com')
    assert.equal(arrived?.messageId, body.message?.providerMessageId)
    assert.ok(arrived?.messageId.includes(body.message?._id ?? '?'))
    assert.match(arrived?.raw ?? '', /^From: Onceonly <sender@example.com>\r$/m)
    assert.match(arrived?.raw ?? '', /how are you\?/)
    assert.match(arrived?.raw ?? '', /b\.png: https:\/\/example\.com\/b\.png/)
    assert.match(arrived?.raw ?? '', /filename=a\.txt/)
    assert.match(arrived?.raw ?? '', new RegExp(Buffer.from('attached').toString('base64')))
  })

  test('webhook: the provider gets the message as JSON, with the effect key', async () => {
    const { body } = await server.send({ ...byHook('To the hook'), recipientEmail: 'x@example.com' })
    const call = hook.calls.find((each) => each.body.includes('To the hook'))
    assert.match(String(call?.headers['idempotency-key']), /^[0-9a-f]{32}$/)
    assert.deepEqual(JSON.parse(call?.body ?? ''), {
      messageId: body.message?._id,
      workspaceId: 'demo',
      recipientPhone: '+4915155',
      recipientEmail: 'x@example.com',
      message: 'To the hook',
      attachments: [],
    })
    assert.deepEqual([body.status, body.message?.providerMessageId], ['sent', 'hook-1'])
    const unnamed = await server.send(byHook('without an id'))
    const key = hook.calls.find((each) => each.body.includes('without an id'))?.headers['idempotency-key']
    assert.equal(unnamed.body.message?.providerMessageId, `webhook:${key}`)
  })

  test('twilio: a form with basic authentication, and media by their URL', async () => {
    const attachments = [{ filename: 'a.png', contentType: 'image/png', url: 'https://example.com/a.png' }]
    const { body } = await server.send({ ...bySms('To the phone & back'), attachments })
    const call = sms.calls.find((each) => each.body.includes('To+the+phone'))
    assert.equal(call?.headers.authorization, `Basic ${Buffer.from('AC1:secret').toString('base64')}`)
    assert.match(String(call?.headers['content-type']), /^application\/x-www-form-urlencoded/)
    assert.deepEqual(Object.fromEntries(new URLSearchParams(call?.body)), {
      To: '+4915166',
      From: '+15550100',
      Body: 'To the phone & back',
      MediaUrl: 'https://example.com/a.png',
    })
    assert.deepEqual([body.status, body.message?.providerMessageId], ['sent', 'SM1'])
  })

  for (const [name, body, fields] of [
    ['smtp without an address', { channel: 'smtp', recipientPhone: '+4915177', message: 'x' }, ['recipientEmail']],
    [
      'twilio without a phone',
      { channel: 'twilio', recipientEmail: 'a@example.com', message: 'x' },
      ['recipientPhone'],
    ],
    [
      'twilio with a file',
      { ...bySms('x'), attachments: [{ filename: 'a', contentType: 'a/b', base64: 'aGk=' }] },
      ['attachments[0].base64'],
    ],
  ] as const) {
    test(`${name} is refused before anything is claimed`, async () => {
      const answer = await server.send(body)
      assert.equal(answer.status, 400)
      assert.deepEqual(
        answer.body.errors?.map(({ field }) => field),
        fields,
      )
    })
  }

  for (const [name, body] of [
    ['a mail server without that mailbox', byMail('refused', 'Who is it?')],
    ['a provider that says no', byHook('go away')],
    ['a text message that is refused', bySms('go away')],
  ] as const) {
    test(`${name}: failed, with the reason`, async () => {
      const answer = await server.send(body)
      assert.ok(answer.status === 201 || answer.status === 200)
      assert.deepEqual([answer.body.success, answer.body.status], [false, 'failed'])
      assert.match(answer.body.message?.error ?? '', /No such person|no such number/)
      assert.equal(answer.body.message?.sentAt, null)
    })
  }

  test('a provider that is only busy leaves the message queued, and gets it later', async () => {
    const busy = await server.send(byHook('busy'))
    assert.deepEqual([busy.status, busy.body.status], [202, 'queued'])
    await until('the provider has taken it', async () => {
      // Its back-off is by the store's clock.
      await cluster.advance(10_000)
      return (await stateOf(busy.body.message?._id ?? '')).status === 'sent'
    })
    const later = await server.send(byMail('later', 'Come back'))
    assert.deepEqual([later.body.status, mail.sentTo('Come back').length], ['queued', 0])
    assert.match(later.body.message?.error ?? '', /Come back later/)
  })

  for (const [name, body] of [
    ['a mail server that hangs up after the content', byMail('lost', 'Was it read?')],
    ['a provider that breaks down', byHook('break down')],
    ['a provider that hangs up', bySms('hang up')],
    ['a provider that says nothing in time', bySms('say nothing')],
  ] as const) {
    test(`${name}: unknown, said so, and not sent again (202)`, async () => {
      await using asked = await (name.endsWith('in time') ? hasty() : patient())
      const { server } = asked
      const callsBefore = hook.calls.length + sms.calls.length + mail.mails.length
      const answer = await server.send(body, { key: `unknown ${name}`.replaceAll(' ', '-') })
      assert.equal(answer.status, 202)
      assert.deepEqual([answer.body.success, answer.body.status], [true, 'unknown'])
      assert.equal(answer.body.message?.status, 'unknown')
      const retry = await server.send(body, { key: `unknown ${name}`.replaceAll(' ', '-') })
      assert.deepEqual([retry.status, retry.text], [202, answer.text])
      const duplicate = await server.send(body)
      assert.deepEqual([duplicate.body.duplicateOnly, duplicate.body.message?.status], [true, 'unknown'])
      assert.equal(hook.calls.length + sms.calls.length + mail.mails.length, callsBefore + 1)
    })
  }

  test('an answer that comes late resolves the unknown, and a retry under the key shows it', async () => {
    await using asked = await hasty()
    const { server } = asked
    const body = byMail('held', 'Better late')
    const unknown = await server.send(body, { key: 'late' })
    assert.deepEqual([unknown.status, unknown.body.status], [202, 'unknown'])
    mail.letGo()
    const id = unknown.body.message?._id ?? ''
    await until('it is sent', async () => (await stateOf(id)).status === 'sent')
    const retry = await server.send(body, { key: 'late' })
    assert.deepEqual([retry.status, retry.body.status, retry.headers.get('idempotent-replayed')], [201, 'sent', 'true'])
    assert.equal(mail.sentTo('Better late').length, 1)
  })

  test('a mail server that cannot be reached has sent nothing: queued, not unknown', async () => {
    const unmailed = await cluster.add({ ONCEONLY_SMTP_URL: 'smtp://127.0.0.1:1' })
    const answer = await unmailed.send(byMail('bob', 'Into the void'))
    assert.deepEqual([answer.status, answer.body.status], [202, 'queued'])
    await unmailed.stop()
  })

  test('what was accepted and not sent is sent by the worker', async () => {
    const body = byMail('queue', 'In the queue')
    const mend = await breakTable(cluster, 'sqlite', 'messages', "new.body = 'In the queue'", 'update')
    const accepted = await server.send(body, { key: 'queue' })
    assert.deepEqual([accepted.status, accepted.body.status], [202, 'queued'])
    assert.equal(mail.sentTo('In the queue').length, 0)
    await mend()
    await cluster.advance(4_000)
    const id = accepted.body.message?._id ?? ''
    await until('it is sent', async () => (await stateOf(id)).status === 'sent')
    assert.equal((await server.send(body, { key: 'queue' })).body.status, 'sent')
    assert.equal(mail.sentTo('In the queue').length, 1)
  })

  test('a configured channel is chosen by itself where it reaches the recipient', async () => {
    const plain = await cluster.add({ ONCEONLY_MESSAGE_WEBHOOK_URL: '', ONCEONLY_TWILIO_URL: '' })
    const mailed = await plain.send({ recipientEmail: 'carl@example.com', message: 'By mail' })
    const kept = await plain.send({ recipientPhone: '+4915188', message: 'No way to a phone' })
    assert.deepEqual([mailed.body.message?.channel, kept.body.message?.channel], ['smtp', 'local'])
    await plain.stop()
  })
})

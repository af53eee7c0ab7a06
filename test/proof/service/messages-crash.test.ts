import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Message } from '../../../service/messages/message.ts'
import { until } from '../../../src/testing/until.ts'
import { breakTable } from '../../support/service/break.ts'
import { type Cluster, onEveryPlace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { type MailServer, startMail } from '../../support/service/messages/mail.ts'
import { type Provider, startProvider } from '../../support/service/messages/provider.ts'
import { LEASE_MS, sendThroughKills } from './messages/kills.ts'

const SENDS = 30
const SENDS_PER_KILL = 6

const messageNow = async (server: TestServer, id: string) =>
  (await server.get(`/api/messages/${id}`)).body as unknown as Message

onEveryPlace('crashes', (place) => {
  let mail: MailServer
  let hook: Provider
  let cluster: Cluster
  before(async () => {
    ;[mail, hook] = await Promise.all([startMail(() => Math.random() * 120), startProvider()])
    const env = {
      ONCEONLY_SMTP_URL: mail.url,
      ONCEONLY_MESSAGE_WEBHOOK_URL: hook.url,
      ONCEONLY_MESSAGE_WEBHOOK_HONOURS_KEYS: 'yes',
      ONCEONLY_SEND_TIMEOUT_MS: '5000',
    }
    cluster = await openCluster(place, { processes: 2, env })
  })
  after(async () => {
    await cluster[Symbol.asyncDispose]()
    await Promise.all([mail, hook].map((each) => each[Symbol.asyncDispose]()))
  })

  test('a process that dies while it sends leaves an unknown, never a second mail', async () => {
    const [one, two] = cluster.servers as [TestServer, TestServer]
    const body = { channel: 'smtp', recipientEmail: 'held@example.com', message: 'Was it sent?' }
    const lost = one.send(body, { key: 'crash' }).then(
      () => 'answered',
      () => 'lost',
    )
    await until(
      'the mail',
      () => mail.mails.length,
      (count) => count === 1,
    )
    await one.kill()
    assert.equal(await lost, 'lost')

    // The lock names its message from the moment that it exists, so a duplicate need not wait for the lease.
    const twin = await two.send(body)
    assert.deepEqual([twin.body.duplicateOnly, twin.body.message?.status], [true, 'sending'])
    const id = twin.body.message?._id ?? ''
    await cluster.advance(LEASE_MS)
    const unknown = await until(
      'unknown',
      () => messageNow(two, id),
      ({ status }) => status === 'unknown',
    )
    assert.match(unknown.error ?? '', /vanished/)
    const retry = await two.send(body, { key: 'crash' })
    assert.deepEqual([retry.status, retry.body.status, retry.body.message], [202, 'unknown', unknown])
    assert.equal(mail.mails.length, 1)
  })

  test('a provider that knows the key is called again with the same one', async () => {
    const one = await cluster.add()
    const [two] = cluster.servers as [TestServer]
    const body = { channel: 'webhook', recipientPhone: '+4915100', message: 'say nothing' }
    one.send(body).catch(() => {})
    await until(
      'the call',
      () => hook.calls.length,
      (count) => count === 1,
    )
    await one.kill()
    const id = (await two.send(body)).body.message?._id ?? ''
    await cluster.advance(LEASE_MS)
    await until(
      'sent',
      () => messageNow(two, id),
      ({ status }) => status === 'sent',
    )
    const keys = hook.calls.map(({ headers }) => headers['idempotency-key'])
    assert.equal(keys.length, 2)
    assert.equal(new Set(keys).size, 1)
  })

  test('a message that its claims do not name is found, not sent again', async () => {
    const one = await cluster.add()
    const [two] = cluster.servers as [TestServer]
    const body = { channel: 'smtp', recipientEmail: 'unheard@example.com', message: 'Claims not updated' }
    const claims = "new.operation in ('guard.messages', 'messages.send')"
    const mend = await breakTable(cluster, place, 'onceonly_records', claims, 'update')
    const sent = await one.send(body, { key: 'unheard' })
    assert.deepEqual([sent.status, sent.body.status], [201, 'sent'])
    await one.kill()
    await mend()
    await cluster.advance(LEASE_MS)
    const twin = await two.send(body)
    assert.deepEqual([twin.body.duplicateOnly, twin.body.message], [true, sent.body.message])
    const retry = await two.send(body, { key: 'unheard' })
    assert.deepEqual([retry.status, retry.text], [201, sent.text])
    assert.equal(mail.sentTo('Claims not updated').length, 1)
  })

  test('killed at random during sends, with clients that retry: nothing twice, nothing forgotten', async () => {
    await cluster.add()
    const { broken } = await sendThroughKills(cluster, mail, { sends: SENDS, sendsPerKill: SENDS_PER_KILL })
    assert.ok(broken > 0, 'no client noticed a crash')
  })
})

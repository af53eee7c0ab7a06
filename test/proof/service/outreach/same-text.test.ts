import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createLedger } from 'onceonly'
import { createGuard } from 'onceonly/guard'
import { type Cluster, onEveryPlace, openCluster, type TestServer } from '../../../support/service/cluster.ts'
import { type MailServer, startMail } from '../../../support/service/messages/mail.ts'
import { makeLead, resolve, start, store, untilState } from '../../../support/service/outreach/outreach.ts'

onEveryPlace('outreach, the same text twice', (place) => {
  let mail: MailServer
  let cluster: Cluster
  let one: TestServer
  let two: TestServer
  before(async () => {
    mail = await startMail()
    const env = { ONCEONLY_SMTP_URL: mail.url, ONCEONLY_SEND_TIMEOUT_MS: '60000' }
    cluster = await openCluster(place, { processes: 2, env })
    ;[one, two] = cluster.servers as [TestServer, TestServer]
  })
  after(async () => {
    await cluster[Symbol.asyncDispose]()
    await mail[Symbol.asyncDispose]()
  })

  test('a text that the same lead already got is not sent again: the step has the result of the original', async () => {
    const lead = await makeLead(one, { recipientEmail: 'twin@example.com' })
    const original = await one.send({ channel: 'smtp', recipientEmail: 'twin@example.com', message: 'Same words' })
    const sequence = await store(one, 'Twin', [{ id: 'mail', type: 'email', template: 'Same words' }])
    const { steps } = await untilState(two, await start(two, sequence, lead), 'succeeded')
    assert.deepEqual(
      [steps[0]?.result?.['messageId'], steps[0]?.result?.['duplicate']],
      [original.body.message?._id, true],
    )
    assert.equal(mail.sentTo('Same words').length, 1)
  })

  test('an original that is being accepted is waited for: the step is tried later, and has its result', async () => {
    await using ledger = createLedger({ store: cluster.store, background: false })
    // The test holds the lock itself, as one more process would.
    const recipientEmail = 'early@example.com'
    const identity = (body: string) => ['demo', null, recipientEmail, body] as const
    const guard = createGuard<string>({ ledger, name: 'messages', identity })
    const gate = Promise.withResolvers<void>()
    const lead = await makeLead(one, { recipientEmail })
    const held = Promise.withResolvers<void>()
    const holding = guard.send(`Early ${lead}`, async () => {
      held.resolve()
      await gate.promise
      // Before an original exists, so that the content is free again.
      throw new Error('not accepted after all')
    })
    await held.promise
    const sequence = await store(one, 'Early', [{ id: 'mail', type: 'email', template: 'Early {{lead.id}}' }])
    const runId = await start(two, sequence, lead)
    const waiting = await untilState(one, runId, 'sleeping')
    assert.equal(waiting.steps[0]?.state, 'retrying')
    assert.match(waiting.steps[0]?.error ?? '', /being accepted/)
    assert.equal(mail.sentTo(`Early ${lead}`).length, 0)
    gate.resolve()
    await assert.rejects(holding)
    await cluster.advance(5_000)
    const { steps } = await untilState(one, runId, 'succeeded')
    assert.equal(steps[0]?.key, waiting.steps[0]?.key)
    assert.ok((steps[0]?.attempts ?? 0) > waiting.steps[0].attempts)
    assert.equal(mail.sentTo(`Early ${lead}`).length, 1)
  })

  test('a text whose original is unknown leaves the step unknown, and is not sent beside it', async () => {
    const recipientEmail = 'lost@twin.example.com'
    const lead = await makeLead(one, { recipientEmail })
    const original = await one.send({ channel: 'smtp', recipientEmail, message: 'Lost twin' })
    assert.equal(original.body.message?.status, 'unknown', original.text)
    const sequence = await store(one, 'Lost twin', [{ id: 'mail', type: 'email', template: 'Lost twin' }])
    const runId = await start(two, sequence, lead)
    const unknown = await untilState(one, runId, 'unknown')
    assert.deepEqual([unknown.steps[0]?.state, unknown.steps[0]?.attempts], ['unknown', 1])
    const done = await resolve(one, unknown, 'mail', { kind: 'succeeded', result: { looked: true } })
    assert.equal(done.status, 200, done.text)
    const { steps } = await untilState(two, runId, 'succeeded')
    assert.deepEqual(steps[0]?.result, { looked: true })
    assert.equal(mail.sentTo('Lost twin').length, 1)
  })
})

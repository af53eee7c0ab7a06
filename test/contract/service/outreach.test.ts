import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Message } from '../../../service/messages/message.ts'
import { until } from '../../../src/testing/until.ts'
import { type Cluster, onEveryPlace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { type MailServer, startMail } from '../../support/service/messages/mail.ts'
import { type Provider, startProvider } from '../../support/service/messages/provider.ts'
import { makeLead, replay, resolve, runNow, start, store, untilState } from '../../support/service/outreach/outreach.ts'

const DAY_MS = 24 * 3_600_000

onEveryPlace('outreach', (place) => {
  let mail: MailServer
  let hook: Provider
  let cluster: Cluster
  let one: TestServer
  let two: TestServer
  before(async () => {
    ;[mail, hook] = await Promise.all([startMail(), startProvider()])
    const twilio = `${hook.url.replace('//', '//SID:TOKEN@')}/Messages.json?From=%2B1555`
    const env = {
      ONCEONLY_SMTP_URL: mail.url,
      ONCEONLY_TWILIO_URL: twilio,
      ONCEONLY_SEND_TIMEOUT_MS: '60000',
      ONCEONLY_WEBHOOK_HOSTS: '127.0.0.1',
    }
    cluster = await openCluster(place, { processes: 2, env })
    ;[one, two] = cluster.servers as [TestServer, TestServer]
  })
  after(async () => {
    await cluster[Symbol.asyncDispose]()
    await Promise.all([mail, hook].map((each) => each[Symbol.asyncDispose]()))
  })

  /**
   * After a clock that was moved, or a long pause, another worker may take a run over while its message is still being
   * sent; and a run shows the state of before until its worker comes to it. So: this attempt, and its message, too.
   */
  async function untilLost(runId: string, body: string, attempts = 1) {
    await until(
      'what came of the message is unknown',
      async () => (await cluster.sql<{ status: string }>(`select status from messages where body = '${body}'`))[0],
      (row) => row?.status === 'unknown',
    )
    return until(
      `attempt ${attempts} is unknown`,
      () => runNow(two, runId),
      ({ state, steps: [step] }) => state === 'unknown' && step?.state === 'unknown' && step.attempts >= attempts,
    )
  }

  test('a webhook gets the key of its step, and the same one when it is asked again', async () => {
    const sequence = await store(one, 'Hook', [
      { id: 'hook', type: 'webhook', url: `${hook.url}/in`, template: 'busy with {{lead.email}}' },
      { id: 'made', type: 'branch', when: { path: 'results.hook.body.id', op: 'eq', value: 'hook-1' }, then: 'mail' },
      { id: 'mail', type: 'email', template: 'Hooked {{lead.email}}' },
    ])
    const lead = await makeLead(one, { recipientEmail: 'hook@example.com' })
    const runId = await start(two, sequence, lead)
    const { steps } = await untilState(one, runId, 'succeeded')
    assert.deepEqual(
      steps.map(({ id, attempts }) => [id, attempts]),
      [
        ['hook', 3],
        ['made', 1],
        ['mail', 1],
      ],
    )
    const calls = hook.calls.filter(({ body }) => body.includes('busy with hook@example.com'))
    assert.deepEqual(
      calls.map(({ headers }) => headers['idempotency-key']),
      [1, 2, 3].map(() => steps[0]?.key),
    )
    assert.equal((JSON.parse(calls[0]?.body ?? '') as { leadId: string }).leadId, lead)
  })

  test('a replay performs nothing, and shows the place where an edited sequence differs', async () => {
    const steps = (template: string) => [
      { id: 'mail', type: 'email', template },
      { id: 'phone', type: 'branch', when: { path: 'lead.phone', op: 'exists' }, then: null },
      { id: 'hook', type: 'webhook', url: `${hook.url}/replay`, template: 'replayed {{lead.id}}' },
    ]
    const sequence = await store(one, 'Replay', steps('First words for {{lead.email}}'))
    const lead = await makeLead(one, { recipientEmail: 'replay@example.com' })
    const runId = await start(one, sequence, lead)
    const { steps: run } = await untilState(one, runId, 'succeeded')
    const before = [mail.mails.length, hook.calls.length]

    const same = await replay(two, runId)
    assert.deepEqual([same.verdict, same.performed, same.blocked], ['identical', 0, 0])
    assert.deepEqual(
      same.steps.map(({ id, key, identical, diff }) => [id, key, identical, diff.length]),
      run.map(({ id, key }) => [id, key, true, 0]),
    )

    await store(one, 'Replay', steps('Other words for {{lead.email}}'))
    const edited = await replay(two, runId, { dryRun: true })
    assert.deepEqual([edited.verdict, edited.performed], ['diverged', 0])
    assert.deepEqual(
      edited.steps.filter(({ identical }) => identical !== true).map(({ id, diff }) => ({ id, diff })),
      [
        {
          id: 'mail',
          diff: [
            {
              path: '$.message',
              original: 'First words for replay@example.com',
              replayed: 'Other words for replay@example.com',
            },
          ],
        },
      ],
    )
    const refused = await two.post(`/api/runs/${runId}/replay`, { dryRun: false })
    assert.deepEqual([refused.status, refused.body.type], [409, '/problems/run-diverged'])
    assert.deepEqual(refused.body.errors, [{ field: 'steps.mail', detail: 'would be changed' }])

    await store(one, 'Replay', steps('First words for {{lead.email}}'))
    const back = await replay(one, runId, { dryRun: false })
    assert.deepEqual([back.verdict, back.performed], ['identical', 0])
    assert.deepEqual([mail.mails.length, hook.calls.length], before)
  })

  test('a branch goes one way, and the other way is passed over', async () => {
    const sequence = await store(one, 'Branch', [
      { id: 'phone', type: 'branch', when: { path: 'lead.phone', op: 'exists' }, then: 'text', else: 'mail' },
      { id: 'text', type: 'sms', template: 'Text for {{lead.phone}}' },
      { id: 'mail', type: 'email', template: 'Mail for {{lead.email}}' },
      { id: 'sent', type: 'branch', when: { path: 'results.mail.status', op: 'eq', value: 'sent' }, then: null },
      { id: 'ring', type: 'call' },
    ])
    const leads = await Promise.all([
      makeLead(one, { recipientPhone: '+4915150001' }),
      makeLead(one, { recipientEmail: 'branch@example.com' }),
    ])
    const runs = await Promise.all(leads.map(async (lead) => start(two, sequence, lead)))
    const ended = await Promise.all(runs.map((runId) => untilState(one, runId, 'succeeded')))
    assert.deepEqual(
      ended.map(({ steps }) => steps.map(({ id }) => id)),
      [
        ['phone', 'text', 'sent', 'ring'],
        ['phone', 'mail', 'sent'],
      ],
    )
    assert.deepEqual(ended[0]?.steps[0]?.result, { taken: 'then' })
    const { body } = await one.get(`/api/messages/${ended[0]?.steps[3]?.result?.['messageId']}`)
    assert.deepEqual([body.message, body['channel']], ['Call +4915150001', 'local'])
  })

  test('a provider that says "not now" is asked again under the same key; one that refuses is not', async () => {
    const sequence = await store(one, 'Retry', [{ id: 'mail', type: 'email', template: 'Retry {{lead.id}}' }])
    const later = await start(one, sequence, await makeLead(one, { recipientEmail: 'later@example.com' }))
    const refused = await start(one, sequence, await makeLead(one, { recipientEmail: 'refused@example.com' }))
    const failed = await untilState(two, refused, 'failed')
    assert.deepEqual([failed.steps[0]?.state, failed.steps[0]?.attempts], ['failed', 1])
    assert.match(failed.error ?? '', /No such person/)

    const trying = await until(
      'the mail is tried a second time',
      async () => (await runNow(one, later)).steps[0],
      (step) => step?.state === 'retrying' && step.attempts >= 2,
    )
    assert.match(trying?.error ?? '', /Come back later/)
    const rows = await cluster.sql<{ n: number | string }>(
      `select count(*) as n from messages where recipient_email = 'later@example.com' and channel = 'smtp'`,
    )
    assert.equal(Number(rows[0]?.n), 1)
    await one.post(`/api/runs/${later}/cancel`, undefined)

    // Each attempt is one call: the same message, which stays queued until its provider takes it.
    const patient = await store(one, 'Patience', [{ id: 'text', type: 'sms', template: 'patience {{lead.id}}' }])
    const lead = await makeLead(one, { recipientPhone: '+4915150002' })
    const patience = await start(one, patient, lead)
    await until('the provider has taken it', async () => {
      // Back-off is by the store's clock.
      await cluster.advance(10_000)
      return (await runNow(two, patience)).state === 'succeeded'
    })
    const { steps } = await runNow(two, patience)
    assert.equal(steps[0]?.result?.['channel'], 'twilio')
    assert.equal(hook.calls.filter(({ body }) => body.includes(`patience+${lead}`)).length, 5)
    const { messages } = (await one.get(`/api/messages?leadId=${lead}`)).body as unknown as { messages: Message[] }
    const texts = messages.filter(({ channel }) => channel === 'twilio')
    assert.deepEqual(
      texts.map(({ _id, status, error }) => [_id, status, error]),
      [[steps[0]?.result?.['messageId'], 'sent', null]],
    )
  })

  test('a lost response leaves the step unknown: listed, not repeated, and resolved by an operator', async () => {
    const sequence = await store(one, 'Unknown', [
      { id: 'mail', type: 'email', template: 'Lost {{lead.id}}' },
      { id: 'after', type: 'wait', ms: 0 },
    ])
    const lead = await makeLead(one, { recipientEmail: 'lost@example.com' })
    const runId = await start(one, sequence, lead)
    const unknown = await untilLost(runId, `Lost ${lead}`)
    assert.deepEqual([unknown.steps[0]?.state, unknown.steps.length], ['unknown', 1])
    const listed = await two.get('/api/runs?state=unknown')
    assert.deepEqual(
      (listed.body['runs'] as { runId: string }[]).map((each) => each.runId),
      [runId],
    )
    const gone = await replay(two, runId, { dryRun: false })
    assert.deepEqual([gone.performed, gone.verdict], [0, 'identical'])
    assert.equal(mail.sentTo(`Lost ${lead}`).length, 1)

    const bad = await resolve(two, unknown, 'mail', { kind: 'perhaps' })
    assert.deepEqual([bad.status, bad.body.errors?.[0]?.field], [400, 'kind'])
    // As after a takeover: the run is unknown already, and the worker has not yet written what came of the message.
    const mine = `where body = 'Lost ${lead}'`
    await cluster.sql(`update messages set status = 'sending', status_at = status_at + ${DAY_MS} ${mine}`)
    const done = await resolve(two, unknown, 'mail', { kind: 'succeeded', result: { status: 'sent' } })
    assert.equal(done.status, 200, done.text)
    const { steps } = await untilState(one, runId, 'succeeded')
    assert.deepEqual(
      steps.map(({ id, state }) => [id, state]),
      [
        ['mail', 'succeeded'],
        ['after', 'succeeded'],
      ],
    )
    assert.equal((await resolve(two, unknown, 'mail', { kind: 'not_done' })).status, 409)
    assert.equal(mail.sentTo(`Lost ${lead}`).length, 1)
    const [row] = await cluster.sql<{ status: string }>(`select status from messages where body = 'Lost ${lead}'`)
    assert.equal(row?.status, 'sent')
  })

  test('a step that an operator resolved as not done is sent again, under its own key', async () => {
    const sequence = await store(one, 'Not done', [{ id: 'mail', type: 'email', template: 'Again {{lead.id}}' }])
    const lead = await makeLead(one, { recipientEmail: 'lost@again.example.com' })
    const runId = await start(one, sequence, lead)
    const unknown = await untilLost(runId, `Again ${lead}`)
    const again = await resolve(two, unknown, 'mail', { kind: 'not_done' })
    assert.equal(again.status, 200, again.text)
    await until(
      'the second mail has come',
      () => mail.sentTo(`Again ${lead}`).length,
      (count) => count === 2,
    )
    const second = await untilLost(runId, `Again ${lead}`, 2)
    assert.equal(second.steps[0]?.key, unknown.steps[0]?.key)
    const end = await resolve(two, second, 'mail', { kind: 'failed', error: 'The address is wrong' })
    assert.equal(end.status, 200, end.text)
    const failed = await untilState(one, runId, 'failed')
    assert.match(failed.error ?? '', /The address is wrong/)
    const rows = await cluster.sql<{ status: string; error: string }>(
      `select status, error from messages where body = 'Again ${lead}' order by created_at, error`,
    )
    assert.deepEqual(
      rows.map(({ status, error }) => [status, error]),
      [['failed', 'The address is wrong']],
    )
  })

  test('a webhook reaches nothing inside the network that no operator has named', async () => {
    const step = { id: 'hook', type: 'webhook', url: `${hook.url}/in`, template: 'inside {{lead.id}}' }
    const inside = { ...step, url: step.url.replace('127.0.0.1', 'localhost') }
    const refused = await one.post('/api/sequences', { name: 'Inside', steps: [inside] })
    assert.deepEqual([refused.status, refused.body.errors?.[0]?.field], [400, 'steps[0].url'], refused.text)
    assert.match(refused.text, /localhost, which is not a public address/)
    const sequence = await store(one, 'Inside', [step])
    // As if it had been stored while the operator still allowed it.
    await cluster.sql(`update outreach_versions set steps = replace(steps, '127.0.0.1', 'localhost')
      where sequence_id = '${sequence}'`)
    const lead = await makeLead(one, { recipientEmail: 'inside@example.com' })
    const failed = await untilState(two, await start(one, sequence, lead), 'failed')
    assert.equal(failed.steps[0]?.attempts, 1)
    assert.match(failed.error ?? '', /localhost is not a public address/)
    assert.deepEqual(
      hook.calls.filter(({ body }) => body.includes(`inside ${lead}`)),
      [],
    )
  })

  // From here on the clock is moved by days: until the workers have renewed their heartbeats, each takes the
  // other for dead, and attempts may be cut off and counted again.
  test('a sequence with a wait continues when the time has come, and every mail arrives once', async () => {
    const sequence = await store(one, 'Wait', [
      { id: 'hello', type: 'email', subject: 'Hello {{lead.email}}', template: 'Good to have you, {{ lead.email }}.' },
      { id: 'pause', type: 'wait', ms: 2 * DAY_MS },
      { id: 'again', type: 'email', template: 'Two days, {{results.hello.status}} by {{results.hello.channel}}' },
    ])
    const lead = await makeLead(one, { recipientEmail: 'wait@example.com' })
    const runId = await start(one, sequence, lead)
    assert.equal(await start(two, sequence, lead), runId)
    const sleeping = await untilState(two, runId, 'sleeping')
    assert.deepEqual(
      sleeping.steps.map(({ id, type, tick, attempts, state }) => [id, type, tick, attempts, state]),
      [
        ['hello', 'email', 0, 1, 'succeeded'],
        ['pause', 'wait', 0, 0, 'waiting'],
      ],
    )
    await cluster.advance(2 * DAY_MS - 60_000)
    assert.equal((await runNow(one, runId)).state, 'sleeping')
    await cluster.advance(60_000)
    const { steps } = await untilState(one, runId, 'succeeded')
    assert.deepEqual(
      steps.map(({ id, state }) => [id, state]),
      [
        ['hello', 'succeeded'],
        ['pause', 'succeeded'],
        ['again', 'succeeded'],
      ],
    )
    const messageId = steps[0]?.result?.['messageId']
    const mails = mail.mails.filter(({ to }) => to === 'wait@example.com')
    assert.deepEqual(
      mails.map(({ subject }) => subject),
      ['Hello wait@example.com', 'Two days, sent by smtp'],
    )
    assert.match(mails[0]?.raw ?? '', /Good to have you, wait@example\.com\./)
    assert.equal(await start(one, sequence, lead), runId)
    const message = await one.get(`/api/messages/${messageId}`)
    assert.deepEqual([message.body.status, message.body['leadId']], ['sent', lead])
  })

  test('a cancelled run does nothing more, and an ended one cannot be cancelled', async () => {
    const sequence = await store(one, 'Cancel', [
      { id: 'pause', type: 'wait', ms: DAY_MS },
      { id: 'mail', type: 'email', template: 'Never {{lead.id}}' },
    ])
    const lead = await makeLead(one, { recipientEmail: 'cancel@example.com' })
    const runId = await start(one, sequence, lead, 'mine')
    assert.equal(runId, 'mine')
    await untilState(one, runId, 'sleeping')
    for (const server of [two, one]) {
      const cancelled = await server.post(`/api/runs/${runId}/cancel`, undefined)
      assert.deepEqual([cancelled.status, cancelled.body['state']], [200, 'cancelled'])
    }
    await cluster.advance(DAY_MS)
    const quick = await store(one, 'Quick', [{ id: 'pause', type: 'wait', ms: 0 }])
    const ended = await start(one, quick, lead)
    await untilState(one, ended, 'succeeded')
    assert.equal((await one.post(`/api/runs/${ended}/cancel`, '')).status, 409)
    assert.equal((await runNow(two, runId)).state, 'cancelled')
    assert.equal(mail.sentTo(`Never ${lead}`).length, 0)
  })

  test('a run that has begun keeps its version, and the next run has the next one', async () => {
    const steps = (template: string) => [
      { id: 'pause', type: 'wait', ms: DAY_MS },
      { id: 'mail', type: 'email', template },
    ]
    const sequence = await store(one, 'Versions', steps('Old {{lead.id}}'))
    const lead = await makeLead(one, { recipientEmail: 'versions@example.com' })
    const old = await start(one, sequence, lead)
    await untilState(one, old, 'sleeping')
    assert.equal(await store(two, 'Versions', steps('New {{lead.id}}')), sequence)
    const fresh = await start(two, sequence, lead)
    assert.notEqual(fresh, old)
    await untilState(one, fresh, 'sleeping')
    await cluster.advance(DAY_MS)
    const ended = await Promise.all([old, fresh].map((runId) => untilState(one, runId, 'succeeded')))
    assert.deepEqual(
      ended.map(({ version }) => version),
      [1, 2],
    )
    assert.deepEqual(
      [`Old ${lead}`, `New ${lead}`].map((subject) => mail.sentTo(subject).length),
      [1, 1],
    )
  })
})

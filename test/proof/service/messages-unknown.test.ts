import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { type Commands, startCommands } from '../../support/admin/cli/commands.ts'
import { type Cluster, onEveryPlace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { type Provider, startProvider } from '../../support/service/messages/provider.ts'

/** Longer than a provider takes that answers at all, on any machine. */
const PATIENT_MS = 60_000
const operator = { headers: { authorization: 'Bearer operator-token-of-tests' } }

onEveryPlace('unknown messages', (place) => {
  let sms: Provider
  let hook: Provider
  let cluster: Cluster
  let one: TestServer
  let commands: Commands
  before(async () => {
    ;[sms, hook] = await Promise.all([startProvider(), startProvider()])
    cluster = await openCluster(place, {
      env: {
        ONCEONLY_TWILIO_URL: `http://AC1:secret@${new URL(sms.url).host}/Accounts/AC1/Messages.json?From=%2B15550100`,
        ONCEONLY_MESSAGE_WEBHOOK_URL: `${hook.url}/hook`,
        ONCEONLY_MESSAGE_WEBHOOK_HONOURS_KEYS: 'yes',
        ONCEONLY_SEND_TIMEOUT_MS: String(PATIENT_MS),
      },
    })
    one = cluster.servers[0] as TestServer
    commands = startCommands(process.cwd(), { ...process.env, ONCEONLY_STORE: cluster.address })
  })
  after(async () => {
    await commands[Symbol.asyncDispose]()
    await cluster[Symbol.asyncDispose]()
    await Promise.all([sms, hook].map((each) => each[Symbol.asyncDispose]()))
  })

  let people = 0
  const lost = async () => {
    people++
    const answer = await one.send({ channel: 'twilio', recipientPhone: `+49151770${people}`, message: 'hang up' })
    assert.deepEqual([answer.status, answer.body.status], [202, 'unknown'], answer.text)
    return answer.body.message?._id ?? ''
  }
  const statusOf = async (id: string) => (await one.get(`/api/messages/${id}`)).body['status']
  const unknownIds = async () => {
    const { body } = await one.get('/api/messages?status=unknown')
    return (body as unknown as { messages: { _id: string }[] }).messages.map(({ _id }) => _id)
  }
  const resolve = (id: string, body: unknown) => one.asOperator('POST', `/api/messages/${id}/resolve`, body)

  test('every place where operators look lists the message, and one request ends it', async () => {
    const id = await lost()
    const calls = sms.calls.length
    assert.deepEqual(await unknownIds(), [id])
    assert.match((await commands.run('unknowns')).stdout, new RegExp(id))
    assert.match((await commands.run('explain', id)).stdout, /unknown/i)
    const { headers } = operator
    const metrics = async () => (await fetch(`${one.url}/metrics`, { headers })).text()
    await until('the metric counts it', metrics, (text) => /^onceonly_dedup_unknown_waiting 1$/m.test(text))

    assert.deepEqual((await resolve(id, { outcome: 'perhaps' })).body.errors?.[0]?.field, 'outcome')
    assert.equal((await resolve('msg_nothing', { outcome: 'sent' })).status, 404)
    assert.equal((await one.post(`/api/messages/${id}/resolve`, { outcome: 'sent' })).status, 401, 'operators only')
    const ended = await resolve(id, { outcome: 'sent' })
    assert.deepEqual([ended.status, ended.body.status], [200, 'sent'], ended.text)
    assert.equal((await resolve(id, { outcome: 'sent' })).status, 200, 'the same word again is harmless')
    assert.equal((await resolve(id, { outcome: 'not_sent' })).status, 409)
    assert.deepEqual(await unknownIds(), [])
    assert.doesNotMatch((await commands.run('unknowns')).stdout, new RegExp(id))
    assert.equal(sms.calls.length, calls, 'the provider was not asked again')
  })

  test('a message that was found not to be sent has failed', async () => {
    const id = await lost()
    const ended = await resolve(id, { outcome: 'not_sent' })
    assert.deepEqual([ended.status, ended.body.status], [200, 'failed'], ended.text)
    assert.match(String(ended.body['error']), /not sent/)
  })

  test('what the command line resolves reaches the message', async () => {
    const id = await lost()
    const record = ['demo', 'messages', 'messages.deliver', id]
    const ended = await commands.run('resolve', ...record, '--to', 'failed', '--error', 'The number is wrong', '--yes')
    assert.equal(ended.status, 0, ended.stderr)
    await until('the message has failed', async () => (await statusOf(id)) === 'failed')
  })

  test('a provider with idempotency keys is called again under the same key, without an operator', async () => {
    const answer = await one.send({ channel: 'webhook', recipientPhone: '+4915177', message: 'hang up once' })
    assert.equal(answer.body.status, 'unknown', answer.text)
    const id = answer.body.message?._id ?? ''
    await until('the delivery is known', async () => {
      // Probes come with a back-off of the store's clock.
      await cluster.advance(10_000)
      return (await statusOf(id)) === 'sent'
    })
    const keys = hook.calls.filter(({ body }) => body.includes(id)).map(({ headers }) => headers['idempotency-key'])
    assert.ok(keys.length >= 2)
    assert.equal(new Set(keys).size, 1, 'always the same key')
  })
})

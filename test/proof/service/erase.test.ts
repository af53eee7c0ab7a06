import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { type Cluster, onEveryPlace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { startMail } from '../../support/service/messages/mail.ts'
import { makeLead, resolve, start, store, untilState } from '../../support/service/outreach/outreach.ts'

interface Done {
  readonly own: Readonly<Record<string, number>>
  readonly left: { readonly count: number; readonly some: readonly { what: string; id: string; why: string }[] }
}

async function erase(server: TestServer, what: 'person' | 'workspace', id: string, preview = false): Promise<Done> {
  const answer = await server.asOperator('POST', '/api/console/actions', { action: 'erase', what, id, preview })
  assert.equal(answer.status, 200, answer.text)
  return (JSON.parse(answer.text) as { result: Done }).result
}

/** Answers what it is asked only when the test lets it. */
async function startSlow() {
  const waiting: ServerResponse[] = []
  const keys: string[] = []
  const server = createServer((request, response) => {
    keys.push(String(request.headers['idempotency-key']))
    waiting.push(response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    keys,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    answer: () => waiting.splice(0).forEach((response) => void response.end('{}')),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

const untilErased = (server: TestServer, id: string) =>
  until(
    'nothing is left under way',
    () => erase(server, 'person', id),
    ({ left }) => left.count === 0,
  )

const open = (cluster: Cluster) => cluster.servers[0] as TestServer

onEveryPlace('erasing a person', (place) => {
  test('takes what went to a phone under the name of another lead, and what stands in its conversation', async () => {
    await using cluster = await openCluster(place)
    const server = open(cluster)
    const phone = '+15550002001'
    const first = await server.send({ recipientPhone: phone, message: 'one' })
    const other = await server.send({ recipientEmail: 'other@example.com', message: 'two' })
    const shared = await server.send({ leadId: other.body.leadId, recipientPhone: phone, message: 'three' })
    assert.equal(shared.status, 200, shared.text)
    // As earlier versions wrote it: the message of one lead in the conversation of another.
    const old = await server.send({ recipientPhone: phone, message: 'four' })
    await cluster.sql(`update messages set lead_id = '${other.body.leadId}' where id = '${old.body.message?._id}'`)
    const mail = { recipientPhone: '+15550002002', recipientEmail: 'third@example.com', message: 'five' }
    const beside = await server.send(mail)
    await server.send({ recipientEmail: 'third@example.com', message: 'six' })
    const { own } = await erase(server, 'person', phone)
    assert.deepEqual([own['messages'], own['leads']], [3, 1])
    for (const { body } of [first, shared, old])
      assert.equal((await server.get(`/api/messages/${body.message?._id}`)).status, 404)
    assert.equal((await server.get(`/api/messages/${other.body.message?._id}`)).status, 200, 'of another person')
    await erase(server, 'person', phone)
    await erase(server, 'person', 'third@example.com')
    assert.equal((await server.get(`/api/messages/${beside.body.message?._id}`)).status, 404, 'it went there, too')
  })

  test('leaves what is under way or unknown, names it, and frees no id', async () => {
    await using mail = await startMail()
    await using slow = await startSlow()
    const env = { ONCEONLY_SMTP_URL: mail.url, ONCEONLY_WEBHOOK_HOSTS: '127.0.0.1' }
    await using cluster = await openCluster(place, { env })
    const server = open(cluster)
    const person = 'lost@example.com'
    const lead = await makeLead(server, { recipientEmail: person })
    const hook = await store(server, 'Hook', [{ id: 'hook', type: 'webhook', url: slow.url, template: 'hi' }])
    const letter = await store(server, 'Letter', [{ id: 'mail', type: 'email', subject: 'Hi', template: 'lost one' }])
    await start(server, hook, lead, 'calls')
    await until('the webhook is called', () => slow.keys.length === 1)
    await start(server, letter, lead, 'writes')
    const unknown = await untilState(server, 'writes', 'unknown')
    const unknowns = async () => (await server.console('/unknowns')).text

    const preview = await erase(server, 'person', person, true)
    const { own, left } = await erase(server, 'person', person)
    assert.deepEqual({ own, left }, { own: preview.own, left: preview.left })
    assert.equal(own['runs'], 0)
    const named = left.some.map(({ what, id, why }) => `${what} ${id.replace(/^.*\//, '')} ${why}`)
    assert.ok(named.includes('run calls running'), String(named))
    assert.ok(named.includes('run writes unknown'), String(named))
    assert.equal(left.some.filter(({ what, why }) => what === 'message' && why === 'unknown').length, 1)
    assert.match(await unknowns(), /writes/)

    slow.answer()
    await untilState(server, 'calls', 'succeeded')
    assert.equal((await resolve(server, unknown, 'mail', { kind: 'succeeded', result: {} })).status, 200)
    await untilState(server, 'writes', 'succeeded')
    await untilErased(server, person)
    assert.doesNotMatch(await unknowns(), /writes/)
    for (const id of ['calls', 'writes']) {
      assert.equal((await server.get(`/api/runs/${id}`)).status, 404)
      const again = await server.post(`/api/sequences/${hook}/runs`, { leadId: lead, runId: id })
      assert.equal(again.status, 409, again.text)
    }
    const [row] = await cluster.sql<{ n: unknown }>('select count(*) as n from onceonly_run_steps')
    assert.equal(Number(row?.n), 0)
    assert.equal(slow.keys.length, 1, 'it was called once')
  })

  test('and a workspace leaves no count of its quotas, and no slot of its webhooks', async () => {
    await using slow = await startSlow()
    const env = { ONCEONLY_WEBHOOK_HOSTS: '127.0.0.1', ONCEONLY_OUTREACH_WEBHOOK_RATE: '5/second' }
    await using cluster = await openCluster(place, { env })
    const server = open(cluster)
    const lead = await makeLead(server, { recipientPhone: '+15550002009' })
    const hook = await store(server, 'Hook', [{ id: 'hook', type: 'webhook', url: slow.url, template: 'hi' }])
    await start(server, hook, lead, 'calls')
    await until('the webhook is called', () => slow.keys.length === 1)
    slow.answer()
    await untilState(server, 'calls', 'succeeded')
    await cluster.advance(60_000)
    await erase(server, 'workspace', 'demo')
    for (const [table, column] of [
      ['message_slots', 'channel'],
      ['workspace_usage', 'workspace_id'],
    ]) {
      const rows = await cluster.sql(`select ${column} from ${table} where ${column} like '%demo%'`)
      assert.deepEqual(rows, [], table)
    }
  })
})

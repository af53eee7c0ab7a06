import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createLedger, final } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { sqliteStore } from 'onceonly/sqlite'
import { until } from '../../../src/testing/until.ts'
import { demoKey, openedService, operatorToken, viewerToken } from '../../support/service/openapi/opened.ts'

const { service, data, ...opened } = await openedService()
/** Another process on the same store, with code of its own. */
const store = sqliteStore(join(data, 'onceonly.db'), { testClock: true })
const ledger = createLedger({ store, background: false })
after(async () => {
  await ledger.stop()
  await store.stop()
  await opened[Symbol.asyncDispose]()
})

interface Answered {
  readonly status: number
  // oxlint-disable-next-line typescript/no-explicit-any -- what a page reads depends on the page.
  readonly body: any
  readonly headers: Headers
}

async function ask(path: string, init: RequestInit = {}): Promise<Answered> {
  const response = await fetch(`${service.url}${path}`, init)
  const text = await response.text()
  const json = text.startsWith('{') ? JSON.parse(text) : text
  return { status: response.status, body: json, headers: response.headers }
}

const own = { 'x-onceonly-console': '1', 'content-type': 'application/json' }

async function signIn(token: string, name: string): Promise<string> {
  const { status, headers } = await ask('/api/console/session', {
    method: 'POST',
    headers: own,
    body: JSON.stringify({ token, name }),
  })
  assert.equal(status, 200)
  const cookie = headers.get('set-cookie') ?? ''
  for (const part of ['HttpOnly', 'SameSite=Strict', 'Path=/api/console']) assert.ok(cookie.includes(part), cookie)
  return cookie.split(';')[0] ?? ''
}

const viewer = await signIn(viewerToken, '')
const ada = await signIn(operatorToken, 'ada')
const read = (path: string, cookie = ada) => ask(`/api/console${path}`, { headers: { cookie } })
const act = (body: object, cookie = ada, headers: Record<string, string> = own) =>
  ask('/api/console/actions', { method: 'POST', headers: { ...headers, cookie }, body: JSON.stringify(body) })

test('requests without a token, from another site, or with a forged cookie are refused', async () => {
  assert.equal((await ask('/api/console/status')).status, 401)
  assert.equal((await read('/status', `${viewer.slice(0, -2)}xx`)).status, 401)
  assert.equal((await read('/status', `onceonly_console=${'\xe9'.repeat(43)}`)).status, 401)
  const sweep = { action: 'sweep' }
  assert.equal(
    (await act(sweep, ada, { 'content-type': 'application/json' })).status,
    403,
    'without the header of the console',
  )
  assert.equal((await act(sweep, ada, { ...own, origin: 'http://evil.example' })).status, 403)
  assert.equal((await act(sweep, ada, { ...own, 'sec-fetch-site': 'cross-site' })).status, 403)
  assert.equal((await act(sweep, viewer)).status, 403)
  assert.equal((await act(sweep)).status, 200)
  assert.equal((await ask('/metrics')).status, 401)
  const metrics = await ask('/metrics', { headers: { authorization: `Bearer ${viewerToken}` } })
  assert.match(String(metrics.body), /^onceonly_store_up 1$/m)
})

test('tokens are not to be guessed', async () => {
  const guess = () =>
    ask('/api/console/session', { method: 'POST', headers: own, body: JSON.stringify({ token: 'a-guess' }) })
  const answers: number[] = []
  for (let n = 0; n < 11; n++) answers.push((await guess()).status)
  assert.deepEqual([answers[0], answers.at(-1)], [401, 429])
})

test('an unknown outcome is found, explained by ten answers, and resolved once; a viewer sees no answer and does nothing', async () => {
  const pay = ledger.operation<null>({ name: 'pay', effect: 'external' })
  const parts = { tenant: 'demo', caller: 'shop', key: 'order-1' }
  await pay.execute(parts, null, () => Promise.reject(new Error('The connection was cut')))
  const { body: unknowns } = await read('/unknowns', viewer)
  const [{ id, fence }] = unknowns.rows
  const { body: found } = await read('/search?key=order-1', viewer)
  assert.equal(found.rows[0].id, id)
  const { body: page } = await read(`/records/${id}`, viewer)
  assert.equal(page.answers.length, 10)
  assert.match(page.answers.find((each: { topic: string }) => each.topic === 'state').answer, /^unknown since/)
  assert.equal(page.record.failure.message, 'The connection was cut')
  assert.deepEqual([page.stored, page.storedHidden], [null, true])

  const resolve = { action: 'resolve', id, to: 'succeeded', value: { paid: true }, ifFence: fence }
  assert.equal((await act(resolve, viewer)).status, 403)
  assert.equal((await act(resolve)).status, 200)
  assert.equal((await act(resolve)).status, 409)
  const { body: after } = await read(`/records/${id}`)
  assert.equal(after.record.state, 'succeeded')
  assert.deepEqual(JSON.parse(after.stored), { paid: true })
  assert.equal(await pay.run(parts, null, async () => 'never').then((value) => JSON.stringify(value)), '{"paid":true}')
  const { body: audit } = await read('/audit')
  const [second, first] = audit.rows
  assert.deepEqual([first.by, first.via, first.what, first.result], ['ada', 'console', 'resolve', 'done'])
  assert.equal(second.result, 'refused')
  await assert.rejects(store.sql.query(`DELETE FROM onceonly_operator_audit`), /only appended to/)
})

test("a guard's lock is seen and released, so that the same text may be sent again", async () => {
  const send = async () => {
    const headers = { authorization: `Bearer ${demoKey}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ recipientPhone: '+491510001', message: 'Hello <script>' })
    return (await ask('/api/messages', { method: 'POST', headers, body })).body.message._id
  }
  const original = await send()
  assert.equal(await send(), original)
  const { body } = await read('/guard')
  const [lock] = body.rows
  assert.equal(lock.original.type, 'message')
  assert.equal((await act({ action: 'forget', id: lock.id })).status, 200)
  assert.notEqual(await send(), original)
})

test('a dead letter is looked at, redriven after a preview, and handled by its consumer', async () => {
  await using inbox = createInbox({ ledger, consumer: 'escalations.notices', background: false })
  const escalated = { tenant: 'demo', targetQueue: 'LEGAL_REVIEW', caseId: 'CASE-1', escalationId: 'ESC-DEAD' }
  const message = { id: 'dead-1', topic: 'CaseEscalated', key: null, sequence: null, headers: {}, deliveries: 1 }
  const received = await inbox.receive({ ...message, body: JSON.stringify(escalated) }, () =>
    Promise.reject(final(new Error('Cannot be handled'))),
  )
  assert.equal(received.kind, 'parked')
  const { body: events } = await read('/events', viewer)
  assert.equal(events.consumers[0].deadLetters, 1)
  const path = '/events/inbox/escalations.notices/dead'
  assert.equal((await read(path, viewer)).body.rows[0].message.body, null)
  const [{ letter, failure }] = (await read(path)).body.rows
  assert.equal(failure.message, 'Cannot be handled')

  const redrive = { action: 'inbox.redrive', consumer: 'escalations.notices', deadLetters: [letter] }
  const { body: preview } = await act({ ...redrive, preview: true }, viewer)
  assert.deepEqual(
    preview.result.map((each: { result: string }) => each.result),
    ['publish'],
  )
  assert.equal((await read(path)).body.rows.length, 1, 'a preview changes nothing')
  assert.equal((await act(redrive, viewer)).status, 403)
  const { body: done } = await act(redrive)
  assert.deepEqual(
    done.result.map((each: { result: string }) => each.result),
    ['published'],
  )
  assert.equal((await read(path)).body.rows.length, 0)
  const noticed = () => store.sql.query(`SELECT 1 FROM escalation_notices WHERE escalation_id = 'ESC-DEAD'`)
  const notices = await until('the consumer has handled it', noticed, ({ length }) => length > 0)
  assert.equal(notices.length, 1)
})

test('every other page answers, and a missing item is a 404', async () => {
  for (const path of ['/status', '/records?state=succeeded', '/stale', '/conflicts', '/busiest', '/sagas', '/doctor']) {
    assert.equal((await read(path, viewer)).status, 200, path)
  }
  assert.deepEqual((await read('/runs')).body, { rows: [], cursor: null })
  assert.equal((await read('/streams/nothing')).status, 404)
  const { rows: rooms, cursor, regions } = (await read('/streams', viewer)).body
  assert.deepEqual([rooms, cursor, regions.length], [[], null, 5], 'and to look for a room makes none')
  assert.deepEqual((await read('/checklist')).body.open, [])
  for (const path of ['/records/nothing', '/runs/nothing', '/sagas/none/instances/none']) {
    assert.equal((await read(path)).status, 404, path)
  }
  assert.equal((await read('/records?cursor=nonsense')).status, 400)
})

test('pages receive live figures', async () => {
  const stopping = new AbortController()
  const response = await fetch(`${service.url}/api/console/live`, {
    headers: { cookie: viewer },
    signal: stopping.signal,
  })
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    if (text.split('event: rates').length > 2) break
  }
  stopping.abort()
  const [, data] = /data: (.*)/.exec(text) ?? []
  assert.equal(JSON.parse(data ?? '').standing.unknownWaiting, 0)
})

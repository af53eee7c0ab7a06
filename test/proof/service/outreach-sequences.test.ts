import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeWorkspace, onEveryPlace, type TestServer, withTwoServers } from '../../support/service/cluster.ts'
import { makeLead, start, store, untilState } from '../../support/service/outreach/outreach.ts'

const email = { id: 'a', type: 'email', template: 'Hi' }
const branch = { id: 'b', type: 'branch', when: { path: 'lead.phone', op: 'exists' }, then: 'a' }
const when = (condition: object) => [email, { ...branch, when: condition, then: null }]

/** What is wrong with the steps, by the field that is named. */
const wrongSteps: readonly (readonly [field: string, steps: unknown])[] = [
  ['steps', undefined],
  ['steps', []],
  ['steps', { 0: email }],
  ['steps', Array.from({ length: 101 }, (_, at) => ({ ...email, id: `s${at}` }))],
  ['steps[0]', ['email']],
  ['steps[1]', [email, null]],
  ['steps[0].id', [{ ...email, id: '' }]],
  ['steps[0].id', [{ ...email, id: 'a/b' }]],
  ['steps[1].id', [email, email]],
  ['steps[0].type', [{ id: 'a' }]],
  ['steps[0].type', [{ id: 'a', type: 'fax', template: 'Hi' }]],
  ['steps[0].type', [{ id: 'a', type: 'constructor' }]],
  ['steps[0].template', [{ id: 'a', type: 'email' }]],
  ['steps[0].template', [{ ...email, template: ' ' }]],
  ['steps[0].template', [{ ...email, template: 'x'.repeat(10_001) }]],
  ['steps[0].template', [{ ...email, template: 'half \ud800' }]],
  ['steps[0].template', [{ ...email, template: 'Hi {{lead.name}}' }]],
  ['steps[0].template', [{ ...email, template: 'Hi {{lead.__proto__}}' }]],
  ['steps[0].template', [{ ...email, template: 'Hi {{email}}' }]],
  ['steps[0].template', [{ ...email, template: 'Hi {{}}' }]],
  ['steps[0].template', [{ ...email, template: 'Hi {{lead.email' }]],
  ['steps[0].template', [{ ...email, template: 'Own {{results.a.status}}' }]],
  [
    'steps[0].template',
    [
      { ...email, template: 'Later {{results.z.status}}' },
      { ...email, id: 'z' },
    ],
  ],
  ['steps[0].subject', [{ ...email, subject: 'Two\nlines' }]],
  ['steps[0].subject', [{ ...email, subject: '{{lead.unknown}}' }]],
  ['steps[0].subject', [{ id: 'a', type: 'sms', template: 'Hi', subject: 'No' }]],
  ['steps[0].els', [{ ...email, els: 'a' }]],
  ['steps[0].ms', [{ id: 'a', type: 'wait' }]],
  ['steps[0].ms', [{ id: 'a', type: 'wait', ms: -1 }]],
  ['steps[0].ms', [{ id: 'a', type: 'wait', ms: 1.5 }]],
  ['steps[0].ms', [{ id: 'a', type: 'wait', ms: 1e15 }]],
  ['steps[0].url', [{ id: 'a', type: 'webhook', template: 'Hi' }]],
  ['steps[0].url', [{ id: 'a', type: 'webhook', template: 'Hi', url: 'file:///etc/passwd' }]],
  ['steps[0].url', [{ id: 'a', type: 'webhook', template: 'Hi', url: 'http://user:secret@example.com/' }]],
  ['steps[1].url', [email, { id: 'b', type: 'webhook', template: 'Hi', url: 'http://169.254.169.254/latest' }]],
  ['steps[1].when', [email, { id: 'b', type: 'branch', then: null }]],
  ['steps[1].when.path', when({ op: 'exists' })],
  ['steps[1].when.path', when({ path: 'lead.name', op: 'exists' })],
  ['steps[1].when.path', when({ path: 'results.unknown.status', op: 'exists' })],
  ['steps[1].when.op', when({ path: 'lead.phone', op: 'like', value: 'x' })],
  ['steps[1].when.value', when({ path: 'lead.phone', op: 'eq' })],
  ['steps[1].when.value', when({ path: 'lead.phone', op: 'eq', value: { a: 1 } })],
  ['steps[1].when.value', when({ path: 'lead.phone', op: 'gt', value: true })],
  ['steps[1].when.value', when({ path: 'lead.phone', op: 'exists', value: true })],
  ['steps[1].then', [email, { id: 'b', type: 'branch', when: branch.when }]],
  ['steps[1].then', [email, { ...branch, then: 7 }]],
  ['steps[1].then', [email, { ...branch, then: 'nowhere' }]],
  ['steps[1].else', [email, { ...branch, then: null, else: 'nowhere' }]],
  ['steps[0].next', [{ ...email, next: 'nowhere' }]],
  ['steps[1].then', [email, branch]],
  ['steps[0].then', [{ ...branch, then: 'b' }]],
  ['steps[0].next', [{ ...email, next: 'a' }]],
  [
    'steps[2].next',
    [
      { ...email, next: 'c' },
      { ...email, id: 'b' },
      { ...email, id: 'c', next: 'b' },
    ],
  ],
]

onEveryPlace('sequences', (place) => {
  let one: TestServer
  let two: TestServer
  withTwoServers(place, (...opened) => void ([, one, two] = opened))

  test('an error in a sequence names its field, and nothing is stored', async () => {
    for (const [field, steps] of wrongSteps) {
      const answer = await one.post('/api/sequences', { name: 'Wrong', steps }, { key: 'wrong' })
      const about = `${field} of ${JSON.stringify(steps)}: ${answer.text}`
      assert.deepEqual([answer.status, answer.body.type], [400, '/problems/invalid-input'], about)
      assert.deepEqual(
        answer.body.errors?.map((error) => error.field),
        [field],
        about,
      )
    }
    for (const name of [undefined, '', ' ', 7, 'x'.repeat(101), 'a\u0000b']) {
      const answer = await one.post('/api/sequences', { name, steps: [email] })
      assert.deepEqual([answer.status, answer.body.errors?.[0]?.field], [400, 'name'], String(name))
    }
    for (const body of ['[]', '7', 'null', '{"name":'])
      assert.equal((await one.post('/api/sequences', body)).status, 400)
    const all = await one.post('/api/sequences', { steps: [{ type: 'sms' }, { id: 'b', type: 'wait' }], more: 1 })
    assert.deepEqual(
      all.body.errors?.map(({ field }) => field),
      ['more', 'name', 'steps[0].id', 'steps[0].template', 'steps[1].ms'],
    )
    // Neither a name nor the key was used up.
    const stored = await one.post('/api/sequences', { name: 'Wrong', steps: [email] }, { key: 'wrong' })
    assert.deepEqual([stored.status, stored.body['version']], [201, 1])
  })

  test('the same name again is the next version; under one key it is the same', async () => {
    const body = { name: 'Named', steps: [email] }
    const first = await one.post('/api/sequences', body, { key: 'named-1' })
    assert.deepEqual([first.status, first.body['version']], [201, 1])
    const again = await two.post('/api/sequences', body, { key: 'named-1' })
    assert.deepEqual([again.status, again.text, again.headers.get('idempotent-replayed')], [201, first.text, 'true'])
    const other = await two.post(
      '/api/sequences',
      { ...body, steps: [{ ...email, template: 'Ho' }] },
      { key: 'named-1' },
    )
    assert.equal(other.status, 409)
    const made = await Promise.all(
      Array.from({ length: 6 }, (_, at) => (at % 2 === 0 ? one : two).post('/api/sequences', body)),
    )
    assert.deepEqual(
      made.map(({ body: { version } }) => Number(version)).toSorted((a, b) => a - b),
      [2, 3, 4, 5, 6, 7],
    )
    assert.deepEqual(new Set(made.map(({ body: { id } }) => id)), new Set([first.body['id']]))
    const read = await two.get(`/api/sequences/${first.body['id']}`)
    assert.deepEqual([read.body['version'], read.body['steps']], [7, [email]])
  })

  test('one run for a version and a lead, however often and wherever it is started; a runId makes another', async () => {
    const id = await store(one, 'Started', [{ id: 'pause', type: 'wait', ms: 60_000 }])
    const lead = await makeLead(one, { recipientEmail: 'started@example.com' })
    const runs = await Promise.all(Array.from({ length: 10 }, (_, at) => start(at % 2 === 0 ? one : two, id, lead)))
    assert.equal(new Set(runs).size, 1)
    assert.equal(await start(one, id, lead, 'own'), 'own')
    // A later change of the lead does not make it another command.
    await one.send({ recipientEmail: 'started@example.com', recipientPhone: '+4915160001', message: 'More' })
    assert.equal(await start(two, id, lead, 'own'), 'own')
    assert.equal(await start(two, id, lead), runs[0])
    const other = await makeLead(one, { recipientEmail: 'other@example.com' })
    const sequence = await store(one, 'Other', [email])
    for (const [path, leadId] of [
      [id, other],
      [sequence, lead],
    ]) {
      const conflict = await two.post(`/api/sequences/${path}/runs`, { leadId, runId: 'own' })
      assert.deepEqual([conflict.status, conflict.body.type], [409, '/problems/run-conflict'])
    }
    for (const [field, body] of [
      ['leadId', {}],
      ['leadId', { leadId: 7 }],
      ['runId', { leadId: lead, runId: 'a/b' }],
      ['runId', { leadId: lead, runId: '' }],
      ['other', { leadId: lead, other: 1 }],
    ] as const) {
      const bad = await one.post(`/api/sequences/${id}/runs`, body)
      assert.deepEqual([bad.status, bad.body.errors?.[0]?.field], [400, field])
    }
    const missing = await one.post(`/api/sequences/${id}/runs`, { leadId: 'unknown' })
    assert.deepEqual([missing.status, missing.body.errors?.[0]?.field], [404, 'leadId'])
  })

  test('a workspace sees nothing of another, and may use the same names', async () => {
    const apiKey = await makeWorkspace(one, 'elsewhere')
    const id = await store(one, 'Shared', [{ id: 'pause', type: 'wait', ms: 60_000 }])
    const lead = await makeLead(one, { recipientEmail: 'shared@example.com' })
    const runId = await start(one, id, lead, 'shared')
    const { steps } = await untilState(one, runId, 'sleeping')
    const asked = [
      two.get(`/api/sequences/${id}`, { apiKey }),
      two.post(`/api/sequences/${id}/runs`, { leadId: lead }, { apiKey }),
      two.get(`/api/runs/${runId}`, { apiKey }),
      two.post(`/api/runs/${runId}/replay`, {}, { apiKey }),
      two.post(`/api/runs/${runId}/replay`, { dryRun: false }, { apiKey }),
      two.post(`/api/runs/${runId}/cancel`, undefined, { apiKey }),
      two.post(`/api/runs/${runId}/steps/${steps[0]?.key}/resolve`, { kind: 'not_done' }, { apiKey }),
    ]
    assert.deepEqual(
      (await Promise.all(asked)).map(({ status }) => status),
      asked.map(() => 404),
    )
    assert.deepEqual((await two.get('/api/runs', { apiKey })).body['runs'], [])
    const own = await two.post('/api/sequences', { name: 'Shared', steps: [email] }, { apiKey })
    assert.deepEqual([own.body['version'], own.body['id'] === id], [1, false])
    const theirLead = await makeLead(one, { recipientEmail: 'shared@example.com' }, { apiKey })
    const foreign = await two.post(`/api/sequences/${own.body['id']}/runs`, { leadId: lead }, { apiKey })
    assert.equal(foreign.status, 404)
    const theirs = await two.post(
      `/api/sequences/${own.body['id']}/runs`,
      { leadId: theirLead, runId: 'shared' },
      { apiKey },
    )
    assert.deepEqual([theirs.status, theirs.body['runId']], [201, 'shared'])
    assert.equal((await one.get('/api/runs/shared')).body['leadId'], lead)
    assert.equal((await one.get('/api/runs/shared', { apiKey })).body['leadId'], theirLead)

    await one.admin('PUT', '/workspaces/elsewhere/callers/api/rights', { rights: ['messages'] })
    assert.equal((await one.get('/api/runs', { apiKey })).status, 403)
  })

  test('runs are listed by state, page by page', async () => {
    const apiKey = await makeWorkspace(one, 'lists')
    const asked = { apiKey }
    const id = await store(one, 'Listed', [{ id: 'pause', type: 'wait', ms: 3_600_000 }], asked)
    const lead = await makeLead(one, { recipientEmail: 'listed@example.com' }, asked)
    const names = ['r1', 'r2', 'r3', 'r4', 'r5']
    for (const runId of names) await one.post(`/api/sequences/${id}/runs`, { leadId: lead, runId }, asked)
    await one.post('/api/runs/r2/cancel', undefined, asked)
    const seen: string[] = []
    let cursor: unknown = null
    do {
      const page = await two.get(`/api/runs?limit=2${cursor === null ? '' : `&cursor=${String(cursor)}`}`, asked)
      assert.equal(page.status, 200, page.text)
      seen.push(...(page.body['runs'] as { runId: string }[]).map(({ runId }) => runId))
      cursor = page.body['cursor']
    } while (cursor !== null)
    assert.deepEqual(seen.toSorted(), names)
    const cancelled = await two.get('/api/runs?state=cancelled', asked)
    assert.deepEqual(
      (cancelled.body['runs'] as { runId: string; state: string }[]).map(({ runId, state }) => [runId, state]),
      [['r2', 'cancelled']],
    )
    for (const [field, query] of [
      ['state', 'state=lost'],
      ['limit', 'limit=0'],
      ['limit', 'limit=101'],
      ['cursor', 'cursor=nonsense'],
    ]) {
      const bad = await one.get(`/api/runs?${query}`, asked)
      assert.deepEqual([bad.status, bad.body.errors?.[0]?.field], [400, field])
    }
  })
})

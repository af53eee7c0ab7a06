import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import {
  type Cluster,
  makeWorkspace,
  onEveryPlace,
  openCluster,
  type TestServer,
} from '../../support/service/cluster.ts'
import { type Provider, startProvider } from '../../support/service/messages/provider.ts'
import {
  begin,
  campaignNow,
  eventsOf,
  type SeenEvent,
  statesOf,
  untilCampaign,
} from '../../support/service/outreach/campaigns.ts'
import { makeLead, replay, runNow, type SeenReplay, store } from '../../support/service/outreach/outreach.ts'

const HOUR_MS = 3_600_000

onEveryPlace('campaigns', (place) => {
  let hook: Provider
  let cluster: Cluster
  let one: TestServer
  let two: TestServer
  let leads: readonly string[]
  before(async () => {
    hook = await startProvider()
    cluster = await openCluster(place, { processes: 2, env: { ONCEONLY_WEBHOOK_HOSTS: '127.0.0.1' } })
    ;[one, two] = cluster.servers as [TestServer, TestServer]
    leads = await Promise.all(['a', 'b', 'c'].map((name) => makeLead(one, { recipientEmail: `${name}@example.com` })))
    await makeLead(one, { recipientPhone: '+4915150009' })
  })
  after(async () => {
    await cluster[Symbol.asyncDispose]()
    await hook[Symbol.asyncDispose]()
  })

  const hooked = (words: string) => [
    { id: 'hook', type: 'webhook', url: `${hook.url}/in`, template: `${words} {{lead.id}}` },
  ]
  const calledFor = (words: string) =>
    hook.calls.flatMap(({ body }) => {
      const { message, leadId } = JSON.parse(body) as { message: string; leadId: string }
      return message.startsWith(words) ? [leadId] : []
    })

  test('each lead has a run of its own, and events tell how far it is; the same request again is the same campaign', async () => {
    const sequenceId = await store(one, 'Once', hooked('Once'))
    const body = { sequenceId, leadIds: leads, campaignId: 'once' }
    assert.equal(await begin(one, body), 'once')
    const seen: SeenEvent[] = []
    for await (const event of eventsOf(two, '/api/campaigns/once/events')) seen.push(event)
    assert.equal(await begin(two, body), 'once')
    assert.deepEqual(calledFor('Once').toSorted(), leads.toSorted())
    const ended = await campaignNow(two, 'once')
    assert.deepEqual([ended.state, ended.leads, statesOf(ended)], ['succeeded', 3, { succeeded: 3 }])
    const run = await runNow(two, `once.${leads[0]}`)
    assert.deepEqual([run.state, run.steps.map(({ id, type }) => [id, type])], ['succeeded', [['hook', 'webhook']]])

    const names = seen.map(({ name }) => name).filter((name) => name !== 'progress')
    assert.deepEqual(names, ['begun', 'batch', ':ended'])
    const last = seen.findLast(({ name }) => name === 'progress')
    assert.deepEqual([last?.data['leads'], statesOf(last?.data as never)], [3, { succeeded: 3 }])
    // Cut off behind the first event: what comes behind it, and nothing before it.
    const begun = seen.find(({ name }) => name === 'begun') as SeenEvent
    const again: string[] = []
    for await (const { name } of eventsOf(one, '/api/campaigns/once/events', begun.id)) again.push(name)
    assert.deepEqual(again, ['batch', 'progress', ':ended'])
    const none: string[] = []
    for await (const { name } of eventsOf(one, '/api/campaigns/once/events', seen.at(-1)?.id)) none.push(name)
    assert.deepEqual(none, [])

    const other = await two.post('/api/campaigns', { ...body, leadIds: leads.slice(1) })
    assert.deepEqual([other.status, other.body.type], [409, '/problems/run-conflict'])
  })

  test('under a key it is one campaign; a filter finds its leads when it begins', async () => {
    const sequenceId = await store(one, 'Filter', hooked('Filter'))
    const body = { sequenceId, filter: { has: 'email' }, concurrency: 1 }
    const ids = await Promise.all([one, two, one].map((server) => begin(server, body, { key: 'filter-1' })))
    assert.equal(new Set(ids).size, 1)
    const campaign = await untilCampaign(two, ids[0] ?? '', 'has ended', ({ state }) => state === 'succeeded')
    assert.equal(campaign.leads, 3)
    assert.deepEqual(calledFor('Filter').toSorted(), leads.toSorted())
    const { body: page } = await one.get('/api/campaigns?state=succeeded&limit=1')
    const [first] = page['campaigns'] as readonly { campaignId: string }[]
    assert.equal(first?.campaignId, ids[0])
    const { body: next } = await one.get(`/api/campaigns?limit=50&cursor=${String(page['cursor'])}`)
    assert.ok((next['campaigns'] as readonly { campaignId: string }[]).every(({ campaignId }) => campaignId !== ids[0]))
  })

  test('cancelled, the runs of its leads end; resumed, they continue where they stood', async () => {
    const sequenceId = await store(one, 'Wait', [
      ...hooked('Before'),
      { id: 'wait', type: 'wait', ms: HOUR_MS },
      { id: 'after', type: 'webhook', url: `${hook.url}/in`, template: 'After {{lead.id}}' },
    ])
    const id = await begin(one, { sequenceId, leadIds: leads })
    await untilCampaign(two, id, 'waits', ({ progress }) => progress['sleeping'] === 3)
    const cancelled = await two.post(`/api/campaigns/${id}/cancel`, undefined)
    assert.deepEqual([cancelled.status, cancelled.body['state']], [200, 'cancelled'])
    const ended = await untilCampaign(one, id, 'has ended', ({ progress }) => progress['cancelled'] === 3)
    assert.equal(ended.state, 'cancelled')
    const resumed = await one.post(`/api/campaigns/${id}/resume`, undefined)
    assert.equal(resumed.status, 200, resumed.text)
    await untilCampaign(two, id, 'waits again', ({ progress }) => progress['sleeping'] === 3)
    await cluster.advance(HOUR_MS)
    await untilCampaign(two, id, 'has succeeded', ({ state }) => state === 'succeeded')
    assert.deepEqual([calledFor('Before').length, calledFor('After').toSorted()], [3, leads.toSorted()])
    const refused = await one.post(`/api/campaigns/${id}/resume`, undefined)
    assert.deepEqual([refused.status, refused.body.type], [409, '/problems/not-resolvable'])
  })

  test('a replay performs nothing; of a lead it shows what an edit of the sequence changes', async () => {
    const sequenceId = await store(one, 'Replayed', hooked('Replayed'))
    const id = await begin(one, { sequenceId, leadIds: leads })
    await untilCampaign(two, id, 'has succeeded', ({ state }) => state === 'succeeded')
    await store(one, 'Replayed', hooked('Edited'))
    const calls = hook.calls.length
    const whole = await two.post(`/api/campaigns/${id}/replay`, undefined)
    const { verdict, performed } = whole.body as unknown as SeenReplay
    assert.deepEqual([whole.status, verdict, performed], [200, 'identical', 0], whole.text)
    const { verdict: changed, steps } = await replay(two, `${id}.${leads[0]}`)
    assert.equal(changed, 'diverged')
    const different = steps.filter(({ identical }) => identical === false)
    assert.deepEqual(
      different.map(({ id: step, diff }) => [step, diff.map(({ path }) => path)]),
      [['hook', ['$.body.message']]],
    )
    assert.equal(hook.calls.length, calls)
  })

  test('one that recurs begins a round at each of its times, and leaves out those that come during one', async () => {
    const sequenceId = await store(one, 'Weekly', hooked('Weekly'))
    const id = await begin(one, { sequenceId, leadIds: leads.slice(1), cron: '0 9 * * 1', timezone: 'Europe/Berlin' })
    for (const round of [1, 2]) {
      const { dueAt } = await untilCampaign(two, id, 'sleeps', ({ dueAt: due }) => due !== null)
      const at = new Date(String(dueAt))
      const there = new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/Berlin', weekday: 'short', hour: 'numeric' })
      assert.match(there.format(at), /Mon.*09/)
      await cluster.advance(at.getTime() - (await cluster.now()))
      await until(
        `round ${round} has called`,
        () => calledFor('Weekly').length,
        (count) => count === 2 * round,
      )
      const name = `${id}.${at.toISOString().replace(/\.\d+|[-:]/g, '')}`
      const ended = await untilCampaign(one, name, 'has ended', ({ state }) => state === 'succeeded')
      assert.deepEqual([ended.partOf, statesOf(ended)], [id, { succeeded: 2 }])
    }
    assert.equal((await one.post(`/api/campaigns/${id}/cancel`, undefined)).status, 200)
  })

  test('another workspace sees nothing of it', async () => {
    const sequenceId = await store(one, 'Own', hooked('Own'))
    const id = await begin(one, { sequenceId, leadIds: leads })
    const apiKey = await makeWorkspace(one, 'strangers')
    for (const path of [`/api/campaigns/${id}`, `/api/campaigns/${id}/events`, `/api/runs/${id}.${leads[0]}`]) {
      assert.equal((await two.get(path, { apiKey })).status, 404, path)
    }
    for (const action of ['cancel', 'resume', 'replay']) {
      assert.equal((await two.post(`/api/campaigns/${id}/${action}`, undefined, { apiKey })).status, 404, action)
    }
    assert.deepEqual((await two.get('/api/campaigns', { apiKey })).body['campaigns'], [])
    const stolen = await two.post('/api/campaigns', { sequenceId, leadIds: leads }, { apiKey })
    assert.equal(stolen.status, 404)
    await untilCampaign(two, id, 'has succeeded', ({ state }) => state === 'succeeded')
  })

  test('what cannot be is refused, and nothing begins', async () => {
    const sequenceId = await store(one, 'Refused', hooked('Refused'))
    const cases: readonly (readonly [object, status: number, field: string])[] = [
      [{ sequenceId }, 400, 'leadIds'],
      [{ sequenceId, leadIds: leads, filter: {} }, 400, 'leadIds'],
      [{ sequenceId, leadIds: [] }, 400, 'leadIds'],
      [{ sequenceId, leadIds: [leads[0], leads[0]] }, 400, 'leadIds'],
      [{ sequenceId, leadIds: [leads[0], 'lead_none'] }, 404, 'leadIds'],
      [{ sequenceId: 'seq_none', leadIds: leads }, 404, 'sequenceId'],
      [{ sequenceId, filter: { has: 'fax' } }, 400, 'filter.has'],
      [{ sequenceId, filter: { createdFrom: 'yesterday' } }, 400, 'filter.createdFrom'],
      [{ sequenceId, leadIds: leads, startAt: '2999-01-01T00:00:00Z' }, 400, 'startAt'],
      [{ sequenceId, leadIds: leads, cron: 'often' }, 400, 'cron'],
      [{ sequenceId, leadIds: leads, cron: '*/5 * * * *' }, 400, 'cron'],
      [{ sequenceId, leadIds: leads, cron: '0 9 * * *', timezone: 'Mars/Olympus' }, 400, 'cron'],
      [{ sequenceId, leadIds: leads, timezone: 'Europe/Berlin' }, 400, 'timezone'],
      [{ sequenceId, leadIds: leads, concurrency: 3 }, 400, 'concurrency'],
      [{ sequenceId, leadIds: leads, campaignId: 'with space' }, 400, 'campaignId'],
    ]
    const before = (await one.get('/api/campaigns?limit=100')).body['campaigns'] as readonly unknown[]
    for (const [body, status, field] of cases) {
      const refused = await one.post('/api/campaigns', body)
      assert.equal(refused.status, status, `${JSON.stringify(body)} ${refused.text}`)
      assert.deepEqual(
        refused.body.errors?.map((each) => each.field),
        [field],
        refused.text,
      )
    }
    const now = (await one.get('/api/campaigns?limit=100')).body['campaigns'] as readonly unknown[]
    assert.equal(now.length, before.length)
  })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { breakTable } from '../../support/service/break.ts'
import {
  type Cluster,
  makeWorkspace,
  onEveryPlace,
  type TestServer,
  withTwoServers,
} from '../../support/service/cluster.ts'
import { assertOnce, batchCreate, escalate, makeCases, QUEUE, resultsOf } from '../../support/service/escalations.ts'

onEveryPlace('batches of escalations', (place) => {
  let cluster: Cluster
  let one: TestServer
  let two: TestServer
  withTwoServers(place, (...opened) => void ([cluster, one, two] = opened))

  test('every item has its own end, and a retry does only what is not done', async () => {
    const items = await makeCases(one, 'MIX', 6)
    const before = await escalate(one, 'mix-before', { caseId: 'MIX-001', targetQueue: QUEUE })
    const asked = [
      items[0],
      items[1],
      { ...items[2], targetQueue: 'NOWHERE' },
      { ...items[3], caseId: 'MIX-999' },
      items[4],
      items[5],
    ] as const
    const mend = await breakTable(cluster, place, 'escalation_audit', `new.escalation > 0 and ${isCase('MIX-004')}`)
    const first = resultsOf(await batchCreate(one, 'mix', asked as readonly object[]))
    await mend()
    assert.deepEqual(
      first.map(({ status, errorCode, retryable }) => [status, errorCode, retryable]),
      [
        ['SUCCEEDED', undefined, undefined],
        ['FAILED', 'ALREADY_ESCALATED', false],
        ['FAILED', 'CASE_NOT_ESCALATABLE', false],
        ['FAILED', 'CASE_NOT_FOUND', false],
        ['FAILED', 'FAILED', true],
        ['SUCCEEDED', undefined, undefined],
      ],
    )
    assert.equal(first[1]?.resourceId, before.body['escalationId'])
    // Neither the row that the transaction undid nor the database's error text is shown.
    assert.deepEqual(Object.keys(first[4] ?? {}).toSorted(), ['errorCode', 'itemKey', 'retryable', 'status'])
    await assertOnce(cluster, 'MIX', ['MIX-000', 'MIX-001', 'MIX-005'])

    await one.admin('PUT', '/cases/MIX-999', { workspaceId: 'demo', escalatableTo: [QUEUE] })
    await one.admin('PUT', '/cases/MIX-002', { workspaceId: 'demo', escalatableTo: [QUEUE, 'NOWHERE'] })
    const again = resultsOf(await batchCreate(two, 'mix', asked.toReversed() as readonly object[])).toReversed()
    for (const at of [0, 1, 2, 5]) assert.deepEqual(again[at], first[at])
    for (const at of [3, 4]) assert.equal(again[at]?.status, 'SUCCEEDED')
    await assertOnce(cluster, 'MIX', ['MIX-000', 'MIX-001', 'MIX-004', 'MIX-005', 'MIX-999'])
  })

  test('the same batch at once on two processes escalates every case once', async () => {
    const items = await makeCases(one, 'BOTH', 20)
    const answers = await Promise.all([
      batchCreate(one, 'both', items),
      batchCreate(two, 'both', items.toReversed()),
      batchCreate(two, 'both', items),
    ])
    const [a, b, c] = answers.map(resultsOf)
    assert.ok(a?.every(({ status }) => status === 'SUCCEEDED'))
    assert.deepEqual(b?.toReversed(), a)
    assert.deepEqual(c, a)
    await assertOnce(
      cluster,
      'BOTH',
      items.map(({ caseId }) => caseId),
    )
  })

  test('an item key with another command is refused; another batch, caller or workspace is another item', async () => {
    const items = await makeCases(one, 'OWN', 3)
    const [item] = items
    await batchCreate(one, 'own', [{ ...item, reason: 'first' }])
    const [reused] = resultsOf(await batchCreate(two, 'own', [{ ...item, reason: 'second' }]))
    assert.deepEqual(
      [reused?.status, reused?.errorCode, reused?.retryable],
      ['FAILED', 'IDEMPOTENCY_KEY_REUSED', false],
    )
    const [absent] = resultsOf(await batchCreate(two, 'own-absent', [{ ...items[1], reason: null }]))
    assert.deepEqual(resultsOf(await batchCreate(one, 'own-absent', [items[1] as object])), [absent])

    const [otherBatch] = resultsOf(await batchCreate(two, 'own-2', [{ ...item, reason: 'second' }]))
    assert.equal(otherBatch?.errorCode, 'ALREADY_ESCALATED')
    const colleague = String((await one.admin('POST', '/workspaces/demo/keys', { caller: 'colleague' })).body['key'])
    const [other] = resultsOf(await batchCreate(two, 'own', [{ ...item, reason: 'first' }], colleague))
    assert.equal(other?.errorCode, 'ALREADY_ESCALATED')
    const stranger = await makeWorkspace(one, 'strangers')
    const [nothing] = resultsOf(await batchCreate(two, 'own', [{ ...item, reason: 'first' }], stranger))
    assert.deepEqual([nothing?.errorCode, nothing?.resourceId], ['CASE_NOT_FOUND', undefined])
  })

  test('a caller that lost the right gets nothing of the batch', async () => {
    const key = await makeWorkspace(one, 'losers', 'ann')
    const items = await makeCases(one, 'LOST', 2, 'losers')
    const first = await batchCreate(one, 'lost', items, key)
    assert.equal(first.status, 200)
    await one.admin('PUT', '/workspaces/losers/callers/ann/rights', { rights: ['messages'] })
    const lost = await batchCreate(two, 'lost', items, key)
    assert.equal(lost.status, 403)
    assert.doesNotMatch(lost.text, /ESC-|LOST-|item-/)
    await one.admin('PUT', '/workspaces/losers/callers/ann/rights', { rights: ['escalations'] })
    assert.equal((await batchCreate(two, 'lost', items, key)).text, first.text)
  })

  test('a batch that cannot be understood claims nothing', async () => {
    const items = await makeCases(one, 'BAD', 5)
    const twice = await batchCreate(one, 'bad', [items[0] as object, { ...items[1], itemKey: 'item-0' }])
    assert.deepEqual([twice.status, twice.body.errors?.map(({ field }) => field)], [400, ['items[1].itemKey']])
    const keyed = await one.post('/case-escalations:batchCreate', { batchId: 'bad', items }, { key: 'k' })
    assert.deepEqual([keyed.status, keyed.body.type], [400, '/problems/idempotency-key-not-allowed'])
    await assertOnce(cluster, 'BAD', [])
    const good = resultsOf(await batchCreate(two, 'bad', items))
    assert.ok(good.every(({ status }) => status === 'SUCCEEDED'))
  })

  /** The audit row names only the number of its escalation, which is in the same transaction. */
  function isCase(caseId: string): string {
    return `exists (select 1 from case_escalations where number = new.escalation and case_id = '${caseId}')`
  }
})

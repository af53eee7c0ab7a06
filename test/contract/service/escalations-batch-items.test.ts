import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Cluster, onEveryPlace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { assertOnce, batchCreate, makeCases, resultsOf } from '../../support/service/escalations.ts'

onEveryPlace('malformed items of a batch of escalations', (place) => {
  let cluster: Cluster
  let server: TestServer
  before(async () => {
    cluster = await openCluster(place)
    ;[server] = cluster.servers as [TestServer]
  })
  after(() => cluster[Symbol.asyncDispose]())

  test('each is answered by itself, and its neighbours are escalated', async () => {
    const items = await makeCases(server, 'BAD', 4)
    const asked = [
      items[0],
      { ...items[1], caseId: 7, colour: 'red' },
      { ...items[2], targetQueue: ' ', reason: '\0' },
      items[3],
    ] as readonly object[]
    const answer = await batchCreate(server, 'bad', asked)
    assert.equal(answer.status, 200, answer.text)
    const results = resultsOf(answer)
    assert.deepEqual(
      results.map(({ itemKey, status, errorCode, retryable, detail }) => [
        itemKey,
        status,
        errorCode,
        retryable,
        detail,
      ]),
      [
        ['item-0', 'SUCCEEDED', undefined, undefined, undefined],
        ['item-1', 'FAILED', 'INVALID_INPUT', false, 'colour is not a field of this command; caseId is not a string'],
        ['item-2', 'FAILED', 'INVALID_INPUT', false, 'targetQueue is blank; reason contains a NUL character'],
        ['item-3', 'SUCCEEDED', undefined, undefined, undefined],
      ],
    )
    await assertOnce(cluster, 'BAD', ['BAD-000', 'BAD-003'])
    // What was malformed holds no claim: corrected, it runs under the same key.
    const again = resultsOf(await batchCreate(server, 'bad', items))
    assert.deepEqual([again[0], again[3]], [results[0], results[3]])
    assert.ok(again.every(({ status }) => status === 'SUCCEEDED'))
    const cases = items.map(({ caseId }) => caseId)
    await assertOnce(cluster, 'BAD', cases)
  })

  test('a batch of malformed items only is answered too', async () => {
    const results = resultsOf(await batchCreate(server, 'none', [{ itemKey: 'a' }, { itemKey: 'b', caseId: null }]))
    assert.deepEqual(
      results.map(({ status, errorCode }) => [status, errorCode]),
      [
        ['FAILED', 'INVALID_INPUT'],
        ['FAILED', 'INVALID_INPUT'],
      ],
    )
  })
})

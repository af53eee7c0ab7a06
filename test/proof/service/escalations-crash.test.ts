import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { holdTable } from '../../support/service/break.ts'
import { type Cluster, onEveryPlace, type TestServer, withTwoServers } from '../../support/service/cluster.ts'
import { assertOnce, batchCreate, makeCases, resultsOf } from '../../support/service/escalations.ts'

/** More rows than a machine can count: the process that began is killed in the middle of it, however busy all is. */
const WITHOUT_END = 10 ** 15

onEveryPlace('batches of escalations', (place) => {
  let cluster: Cluster
  let one: TestServer
  let two: TestServer
  withTwoServers(place, (...opened) => void ([cluster, one, two] = opened))

  test('killed in the middle of a hundred items: each runs once, whichever process continues', async () => {
    const items = await makeCases(two, 'KILL', 100)
    const asked = items.map((item, at) => (at % 10 === 3 ? { ...item, targetQueue: 'NOWHERE' } : item))
    const victim = await cluster.add()
    const open = await holdTable(cluster, place, 'case_escalations', "new.case_id = 'KILL-050'", WITHOUT_END)
    const lost = batchCreate(victim, 'kill', asked).then(
      () => assert.fail('The batch was answered'),
      () => {},
    )
    const count = "select count(*) as n from case_escalations where case_id like 'KILL-%'"
    const done = async () => Number((await cluster.sql<{ n: unknown }>(count))[0]?.n)
    await until('half of the items are done', async () => (await done()) >= 45)
    await victim.kill()
    await lost
    await open()
    assert.equal(await done(), 45)

    // A subset first, in another order, by another process; then all of it, by one that was started afterwards.
    const part = resultsOf(await batchCreate(two, 'kill', asked.slice(40, 60).toReversed()))
    assert.ok(part.every(({ status }) => status === 'SUCCEEDED' || status === 'FAILED'))
    const restarted = await cluster.add()
    const whole = resultsOf(await batchCreate(restarted, 'kill', asked))
    const failing = (at: number) => at % 10 === 3
    assert.deepEqual(
      whole.map(({ status, errorCode }) => errorCode ?? status),
      asked.map((_, at) => (failing(at) ? 'CASE_NOT_ESCALATABLE' : 'SUCCEEDED')),
    )
    assert.deepEqual(whole.slice(40, 60), part.toReversed())
    const escalated = asked.filter((_, at) => !failing(at)).map(({ caseId }) => caseId)
    await assertOnce(cluster, 'KILL', escalated)
    assert.equal(new Set(whole.map(({ resourceId }) => resourceId)).size, escalated.length + 1)

    // More than before: only what is new runs.
    const [more] = await makeCases(one, 'KILLMORE', 1)
    const longer = resultsOf(await batchCreate(one, 'kill', [{ ...more, itemKey: 'more' }, ...asked]))
    assert.deepEqual(longer.slice(1), whole)
    assert.equal(longer[0]?.status, 'SUCCEEDED')
    await assertOnce(cluster, 'KILL', escalated)
  })
})

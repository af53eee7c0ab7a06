import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY, MINUTE } from 'onceonly'
import { breakTable, holdTable, whenHeld } from '../../support/service/break.ts'
import {
  type Answer,
  type Cluster,
  makeWorkspace,
  onEveryPlace,
  type TestServer,
  withTwoServers,
} from '../../support/service/cluster.ts'
import {
  assertOnce,
  batchCreate,
  escalate,
  type Item,
  makeCases,
  resultsOf,
} from '../../support/service/escalations.ts'
import { loseAnswersOf } from './lossy.ts'

/** On SQLite a duplicate waits for the writer, but not forever: a busy machine counts these in a second or two. */
const BUSY_ROWS = 2_000_000

const replayed = ({ headers }: Answer) => headers.get('idempotent-replayed') === 'true'

/** The scenarios that every request under a key must survive (R14), each with cases of its own. */
onEveryPlace('escalating under a key', (place) => {
  let cluster: Cluster
  let one: TestServer
  let two: TestServer
  withTwoServers(place, (...opened) => void ([cluster, one, two] = opened))

  /** One case, and the command that escalates it. */
  async function commandFor(prefix: string, workspaceId?: string): Promise<Omit<Item, 'itemKey'>> {
    const [item] = await makeCases(one, prefix, 1, workspaceId)
    assert.ok(item !== undefined)
    const { itemKey: _, ...command } = item
    return command
  }

  test('first success', async () => {
    const command = await commandFor('FIRST')
    const first = await escalate(one, 'first', command)
    assert.equal(first.status, 201)
    assert.equal(replayed(first), false)
    const location = first.headers.get('location') ?? ''
    assert.match(location, /^\/case-escalations\/ESC-\d+$/)
    assert.equal((await two.get(location)).text, first.text)
    await assertOnce(cluster, 'FIRST', ['FIRST-000'])
  })

  test('same key retry', async () => {
    const command = await commandFor('RETRY')
    const first = await escalate(one, 'retry', command)
    for (const server of [one, two, two]) {
      const again = await escalate(server, 'retry', command)
      assert.deepEqual(
        [again.status, again.text, again.headers.get('location'), replayed(again)],
        [201, first.text, first.headers.get('location'), true],
      )
    }
    await assertOnce(cluster, 'RETRY', ['RETRY-000'])
  })

  test('other payload', async () => {
    const command = await commandFor('OTHER')
    const first = await escalate(one, 'other', command)
    const reused = await escalate(two, 'other', { ...command, reason: 'Something else' })
    assert.deepEqual(
      [reused.status, reused.body.type, reused.body.retryable],
      [409, '/problems/idempotency-key-reused', false],
    )
    assert.doesNotMatch(reused.text, /ESC-/)
    // The record is untouched.
    assert.equal((await escalate(two, 'other', command)).text, first.text)
    await assertOnce(cluster, 'OTHER', ['OTHER-000'])
  })

  test('while in progress', async () => {
    const command = await commandFor('BUSY')
    const open = await holdTable(cluster, place, 'case_escalations', "new.case_id = 'BUSY-000'", BUSY_ROWS)
    let over = false
    const first = escalate(one, 'busy', command).finally(() => (over = true))
    await whenHeld(cluster, place, () => over)
    const twin = escalate(two, 'busy', command)
    if (place === 'postgres') {
      // The duplicate waits, and is refused at last with a Retry-After.
      const sentAway = await twin
      assert.deepEqual(
        [sentAway.status, sentAway.body.type, sentAway.body.retryable],
        [409, '/problems/request-in-progress', true],
      )
      assert.ok(Number(sentAway.headers.get('retry-after')) >= 1)
      await open()
    }
    // On SQLite the duplicate waits for the only writer, which is the transaction of the first.
    const original = await first
    assert.deepEqual([original.status, replayed(original)], [201, false])
    if (place === 'sqlite') {
      assert.deepEqual([(await twin).text, replayed(await twin)], [original.text, true])
      await open()
    }
    const later = await escalate(two, 'busy', command)
    assert.deepEqual([later.text, replayed(later)], [original.text, true])
    await assertOnce(cluster, 'BUSY', ['BUSY-000'])
  })

  test('lost response then retry', async () => {
    const command = await commandFor('GONE')
    await using network = await loseAnswersOf(one.url)
    const headers = {
      authorization: `Bearer ${one.apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': 'gone',
    }
    await assert.rejects(
      fetch(`${network.url}/case-escalations`, { method: 'POST', headers, body: JSON.stringify(command) }),
    )
    assert.equal(network.lost, 1)
    await assertOnce(cluster, 'GONE', ['GONE-000'])
    const retry = await escalate(two, 'gone', command)
    assert.deepEqual([retry.status, replayed(retry)], [201, true])
    assert.equal((await one.get(retry.headers.get('location') ?? '')).text, retry.text)
    await assertOnce(cluster, 'GONE', ['GONE-000'])
  })

  test('failure before commit then retry', async () => {
    const command = await commandFor('UNDONE')
    const mend = await breakTable(cluster, place, 'onceonly_outbox_rows', "new.key = 'UNDONE-000'")
    const failed = await escalate(one, 'undone', command)
    assert.deepEqual([failed.status, failed.body.retryable], [500, true])
    assert.doesNotMatch(failed.text, /broken on purpose/)
    await assertOnce(cluster, 'UNDONE', [])
    await mend()
    const retry = await escalate(two, 'undone', command)
    assert.deepEqual([retry.status, replayed(retry)], [201, false])
    await assertOnce(cluster, 'UNDONE', ['UNDONE-000'])
  })

  test('terminal failure retry', async () => {
    const command = { ...(await commandFor('NEVER')), targetQueue: 'NOWHERE' }
    const first = await escalate(one, 'never', command)
    assert.deepEqual([first.status, first.body['errorCode'], replayed(first)], [422, 'CASE_NOT_ESCALATABLE', false])
    // Even if it could be done by now: the command has ended.
    await one.admin('PUT', '/cases/NEVER-000', { workspaceId: 'demo', escalatableTo: ['NOWHERE'] })
    const again = await escalate(two, 'never', command)
    assert.deepEqual([again.status, again.text, replayed(again)], [422, first.text, true])
    await assertOnce(cluster, 'NEVER', [])
    assert.equal((await escalate(two, 'never-again', command)).status, 201)
  })

  test('batch partial retry', async () => {
    const items = await makeCases(one, 'PART', 4)
    const asked = items.map((item, at) => (at === 1 ? { ...item, targetQueue: 'NOWHERE' } : item))
    const mend = await breakTable(cluster, place, 'onceonly_outbox_rows', "new.key = 'PART-002'")
    const first = resultsOf(await batchCreate(one, 'part', asked.slice(0, 3)))
    await mend()
    assert.deepEqual(
      first.map(({ status, retryable }) => [status, retryable]),
      [
        ['SUCCEEDED', undefined],
        ['FAILED', false],
        ['FAILED', true],
      ],
    )
    await assertOnce(cluster, 'PART', ['PART-000'])
    const again = resultsOf(await batchCreate(two, 'part', asked))
    assert.deepEqual(again.slice(0, 2), first.slice(0, 2))
    assert.ok(again.slice(2).every(({ status }) => status === 'SUCCEEDED'))
    await assertOnce(cluster, 'PART', ['PART-000', 'PART-002', 'PART-003'])
  })

  test('lost authorisation', async () => {
    const key = await makeWorkspace(one, 'acme', 'ann')
    const command = await commandFor('RIGHT', 'acme')
    const first = await escalate(one, 'right', command, key)
    assert.equal(first.status, 201)
    await one.admin('PUT', '/workspaces/acme/callers/ann/rights', { rights: ['messages'] })
    for (const server of [one, two]) {
      const lost = await escalate(server, 'right', command, key)
      assert.equal(lost.status, 403)
      assert.equal(lost.headers.get('location'), null)
      assert.doesNotMatch(lost.text, /ESC-|RIGHT-|BILLING/)
    }
    await one.admin('PUT', '/workspaces/acme/callers/ann/rights', { rights: ['escalations'] })
    const regained = await escalate(two, 'right', command, key)
    assert.deepEqual([regained.text, replayed(regained)], [first.text, true])
    await assertOnce(cluster, 'RIGHT', ['RIGHT-000'])
  })

  test('twenty concurrent duplicates', async () => {
    const command = await commandFor('TWENTY')
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) => escalate(at % 2 === 0 ? one : two, 'twenty', command)),
    )
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]))
    assert.equal(new Set(answers.map(({ text, headers }) => text + headers.get('location'))).size, 1)
    assert.equal(answers.filter((answer) => !replayed(answer)).length, 1)
    await assertOnce(cluster, 'TWENTY', ['TWENTY-000'])
  })

  test('more commands at once than the store has connections', async () => {
    const items = await makeCases(one, 'MANY', 60)
    const answers = await Promise.all(items.map(({ itemKey, ...command }) => escalate(one, itemKey, command)))
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]))
    await assertOnce(
      cluster,
      'MANY',
      items.map(({ caseId }) => caseId),
    )
  })

  // Last, because it moves the time of the store.
  test('expired key', async () => {
    const command = await commandFor('OLD')
    const kept = await commandFor('OLDKEPT')
    const other = await commandFor('OLDOTHER')
    const first = await escalate(one, 'old', command)
    const before = await escalate(one, 'old-kept', kept)
    await cluster.advance(7 * DAY - MINUTE)
    assert.equal((await escalate(two, 'old-kept', kept)).text, before.text)
    await cluster.advance(2 * MINUTE)
    // The key is new again, but the case is not: what is unique to the business outlives every key.
    const late = await escalate(two, 'old', command)
    assert.deepEqual(
      [late.status, late.body.type, late.headers.get('location'), replayed(late)],
      [409, '/problems/already-escalated', first.headers.get('location'), false],
    )
    await assertOnce(cluster, 'OLD', ['OLD-000'])
    await cluster.advance(8 * DAY)
    assert.equal((await escalate(one, 'old', other)).status, 201)
  })
})

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { breakTable } from '../../support/service/break.ts'
import { type Answer, type Cluster, onEveryPlace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { type MailServer, startMail } from '../../support/service/messages/mail.ts'

interface Result {
  readonly itemKey: string
  readonly status: string
  readonly resourceId?: string
  readonly errorCode?: string
  readonly retryable?: boolean
  readonly detail?: string
  readonly duplicateOnly?: boolean
}

const resultsOf = ({ body }: Answer) => body['results'] as readonly Result[]

onEveryPlace('batches', (place) => {
  let mail: MailServer
  let cluster: Cluster
  let one: TestServer
  let two: TestServer
  before(async () => {
    mail = await startMail()
    cluster = await openCluster(place, { processes: 2, env: { ONCEONLY_SMTP_URL: mail.url } })
    ;[one, two] = cluster.servers as [TestServer, TestServer]
  })
  after(async () => {
    await cluster[Symbol.asyncDispose]()
    await mail[Symbol.asyncDispose]()
  })

  const batchSend = (server: TestServer, batchId: string, items: readonly object[]) =>
    server.post('/api/messages:batchSend', { batchId, items })

  test('one template to a hundred leads is a hundred mails, and a retry is none (G5)', async () => {
    const items = Array.from({ length: 100 }, (_, at) => ({
      itemKey: `lead-${at}`,
      recipientEmail: `lead${at}@example.com`,
      message: 'The newsletter',
    }))
    const first = await batchSend(one, 'newsletter', items)
    assert.equal(first.status, 200)
    assert.equal(first.body['batchId'], 'newsletter')
    assert.deepEqual(
      resultsOf(first).map(({ itemKey, status }) => `${itemKey} ${status}`),
      items.map(({ itemKey }) => `${itemKey} SUCCEEDED`),
    )
    assert.equal(new Set(resultsOf(first).map(({ resourceId }) => resourceId)).size, 100)
    assert.equal(mail.sentTo('The newsletter').length, 100)

    const again = await batchSend(two, 'newsletter', items.toReversed())
    assert.deepEqual(resultsOf(again).toReversed(), resultsOf(first))
    assert.equal(mail.sentTo('The newsletter').length, 100)
  })

  test('every item has its own end, and a retry does only what is not done', async () => {
    const to = (name: string, message: string) => ({ recipientEmail: `${name}@example.com`, message })
    const original = await one.send(to('known', 'Sent before'))
    const items = [
      { itemKey: 'good', ...to('good', 'Item good') },
      { itemKey: 'bad', recipientPhone: 'nonsense', message: '' },
      { itemKey: 'unknown', leadId: 'lead_unknown', message: 'Item unknown' },
      { itemKey: 'refused', ...to('refused', 'Item refused') },
      { itemKey: 'lost', ...to('lost', 'Item lost') },
      { itemKey: 'twin', ...to('known', 'Sent before') },
      { itemKey: 'stuck', ...to('stuck', 'Item stuck') },
    ]
    const mend = await breakTable(cluster, place, 'messages', "new.body = 'Item stuck'")
    const first = resultsOf(await batchSend(one, 'mixed', items))
    await mend()
    assert.deepEqual(
      first.map(({ itemKey, status, errorCode, retryable }) => [itemKey, status, errorCode, retryable]),
      [
        ['good', 'SUCCEEDED', undefined, undefined],
        ['bad', 'FAILED', 'INVALID_INPUT', false],
        ['unknown', 'FAILED', 'UNKNOWN_LEAD', false],
        ['refused', 'FAILED', 'PROVIDER_REFUSED', false],
        ['lost', 'UNKNOWN', undefined, undefined],
        ['twin', 'SUCCEEDED', undefined, undefined],
        ['stuck', 'FAILED', 'INTERNAL', true],
      ],
    )
    assert.match(first[1]?.detail ?? '', /recipientPhone .*; message /)
    assert.deepEqual([first[5]?.duplicateOnly, first[5]?.resourceId], [true, original.body.message?._id])

    const mended = items.map((item) =>
      item.itemKey === 'bad' ? { itemKey: 'bad', ...to('bad', 'Item bad, mended') } : item,
    )
    const again = resultsOf(await batchSend(two, 'mixed', mended))
    assert.deepEqual(
      again.map(({ status }) => status),
      ['SUCCEEDED', 'SUCCEEDED', 'FAILED', 'FAILED', 'UNKNOWN', 'SUCCEEDED', 'SUCCEEDED'],
    )
    for (const at of [0, 2, 3, 4, 5]) assert.deepEqual(again[at], first[at])
    for (const text of ['Item good', 'Item lost', 'Sent before', 'Item stuck', 'Item bad, mended']) {
      assert.equal(mail.sentTo(text).length, 1, text)
    }
  })

  test('an item key with another message is refused, and so is a duplicate one', async () => {
    const item = { itemKey: 'a', recipientEmail: 'reuse@example.com', message: 'First use' }
    await batchSend(one, 'reuse', [item])
    const [reused] = resultsOf(await batchSend(two, 'reuse', [{ ...item, message: 'Second use' }]))
    assert.deepEqual([reused?.status, reused?.errorCode], ['FAILED', 'IDEMPOTENCY_KEY_REUSED'])
    assert.equal(mail.sentTo('Second use').length, 0)
    const twice = await batchSend(one, 'twice', [item, item])
    assert.equal(twice.status, 400)
    assert.deepEqual(
      twice.body.errors?.map(({ field }) => field),
      ['items[1].itemKey'],
    )
  })

  test('a header key on a batch is refused', async () => {
    const body = { batchId: 'b', items: [{ itemKey: 'a', recipientEmail: 'x@example.com', message: 'x' }] }
    const answer = await one.post('/api/messages:batchSend', body, { key: 'k' })
    assert.deepEqual([answer.status, answer.body.type], [400, '/problems/idempotency-key-not-allowed'])
  })

  test('the same batch at once on two processes sends every item once', async () => {
    const items = Array.from({ length: 20 }, (_, at) => ({
      itemKey: `i${at}`,
      recipientEmail: `both${at}@example.com`,
      message: 'From both sides',
    }))
    const answers = await Promise.all([batchSend(one, 'both', items), batchSend(two, 'both', items)])
    assert.equal(mail.sentTo('From both sides').length, 20)
    for (const answer of answers) {
      assert.ok(resultsOf(answer).every(({ status }) => status === 'SUCCEEDED' || status === 'IN_PROGRESS'))
    }
    const after = resultsOf(await batchSend(one, 'both', items))
    assert.ok(after.every(({ status, duplicateOnly }) => status === 'SUCCEEDED' && duplicateOnly === undefined))
    assert.equal(mail.sentTo('From both sides').length, 20)
  })
})

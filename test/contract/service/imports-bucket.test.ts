import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, before, test } from 'node:test'
import { DeleteObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { ris } from '../../../service/imports/parse/test-files.ts'
import { until } from '../../../src/testing/until.ts'
import { type Cluster, openCluster, type TestServer } from '../../support/service/cluster.ts'
import {
  byEventBridge,
  bySns,
  direct,
  notifyAsSns,
  TOPIC,
  uploadDirectly,
} from '../../support/service/imports/bucket-events.ts'
import {
  commandsIn,
  ended,
  hookSecret,
  notify,
  scandals,
  see,
  startImport,
  upload,
} from '../../support/service/imports/imports.ts'
import { BUCKET_OF_TESTS, openTestBucket, type TestBucket } from '../../support/service/imports/s3.ts'

let s3: TestBucket
let cluster: Cluster
let one: TestServer
let two: TestServer
before(async () => {
  s3 = await openTestBucket()
  cluster = await openCluster('sqlite', { processes: 2, env: { ...s3.env, ONCEONLY_HOOK_SECRET: hookSecret } })
  ;[one, two] = cluster.servers as [TestServer, TestServer]
})
after(async () => {
  // A server that did not start must not keep the process.
  await (cluster as Cluster | undefined)?.[Symbol.asyncDispose]()
  await s3[Symbol.asyncDispose]()
})

const files = ['a b.ris', 'ü+1.ris']

test('uploads to the bucket itself, announced by three ways at once and late: one command per file', async () => {
  const { searchId, uploads } = await startImport(one, files)
  assert.equal(uploads[0]?.objectKey, `team-a/${searchId}/a b.ris`)
  for (const name of files) {
    const object = await uploadDirectly(two, searchId, name, ris(1))
    const notifications = [direct(object), bySns(object), byEventBridge(object)]
    const answers = await Promise.all(notifications.flatMap((body) => [notify(one, body), notifyAsSns(two, body)]))
    for (const { status, text } of answers) assert.equal(status, 200, text)
  }
  const seen = await ended(one, searchId)
  assert.deepEqual([seen.state, seen.references, commandsIn(seen)], ['Completed', 2, 2], JSON.stringify(seen))
  const late = { searchId, name: 'a b.ris', bytes: 1, sequencer: '0066' }
  const [row] = await cluster.sql<{ etag: string }>(`select etag from import_uploads where search_id = '${searchId}'`)
  for (const body of [bySns({ ...late, etag: row?.etag ?? '' }), byEventBridge({ ...late, etag: row?.etag ?? '' })]) {
    assert.equal((await notify(two, body)).status, 200)
  }
  assert.equal(commandsIn(await see(two, searchId)), 2)
  assert.deepEqual(scandals(cluster.servers), [])
})

test('uploads through the server land in the bucket, once, and need no announcement', async () => {
  const started = await startImport(one, ['a.ris'])
  assert.equal((await upload(one, started, 'a.ris', ris(1) + ris(2))).status, 201)
  const again = await upload(two, started, 'a.ris', ris(1) + ris(2))
  assert.equal(again.status, 200, again.text)
  const other = await upload(two, started, 'a.ris', ris(3))
  assert.deepEqual([other.status, other.body.type], [409, '/problems/file-already-uploaded'], other.text)
  const { state, references } = await ended(two, started.searchId)
  assert.deepEqual([state, references], ['Completed', 2])
  // What is there already is compared by the server.
  const address = await one.get(`/api/imports/${started.searchId}/files/a.ris/upload?bytes=3`)
  assert.deepEqual([address.body['to'], address.body['expiresAt']], ['server', null], address.text)
})

test('what is announced but not in the bucket is postponed, and received when it can be seen', async () => {
  const { searchId } = await startImport(one, ['a.ris'])
  const absent = { searchId, name: 'a.ris', etag: 'none', bytes: 1 }
  for (const body of [direct(absent), bySns(absent)]) {
    const answer = await notify(one, body)
    assert.deepEqual([answer.status, answer.body['postponed']], [200, 1], answer.text)
  }
  s3.hidden.add(`team-a/${searchId}/a.ris`)
  const object = await uploadDirectly(one, searchId, 'a.ris', ris(1))
  assert.equal((await notify(two, direct(object))).body['postponed'], 1)
  s3.hidden.clear()
  assert.equal((await notify(two, bySns(object))).body['received'], 1)
  const seen = await ended(two, searchId)
  assert.deepEqual([seen.state, commandsIn(seen)], ['Completed', 1])
})

test('the content that was accepted first stays, whatever becomes of the object', async () => {
  const { searchId } = await startImport(one, ['a.ris', 'b.ris'])
  const first = await uploadDirectly(one, searchId, 'a.ris', ris(1))
  assert.equal((await notify(one, direct(first))).status, 200)
  const Key = `team-a/${searchId}/a.ris`
  // As storage allows that does not know the condition.
  await s3.client.send(new PutObjectCommand({ Bucket: BUCKET_OF_TESTS, Key, Body: ris(2) + ris(3) }))
  const other = await notify(two, direct({ ...first, etag: 'other', sequencer: '0077' }))
  assert.deepEqual([other.status, other.body.retryable], [409, false], other.text)
  await notify(two, direct(await uploadDirectly(two, searchId, 'b.ris', ris(1))))
  const { state, reason } = await ended(one, searchId)
  assert.equal(state, 'Error')
  assert.match(reason ?? '', /a\.ris: The file was replaced in the bucket/)
})

test('other buckets, other folders, unknown imports and bad lengths are refused by name', async () => {
  const { searchId } = await startImport(one, ['a.ris'])
  const object = { searchId, name: 'a.ris', etag: 'e', bytes: 1 }
  for (const [body, status, field] of [
    [direct({ ...object, bucket: 'foreign' }), 400, 'Records[0].s3.bucket.name'],
    [byEventBridge({ ...object, bucket: 'foreign' }), 400, 'Records[0].s3.bucket.name'],
    [bySns({ ...object, prefix: 'team-b' }), 400, 'Records[0].s3.object.key'],
    [direct({ ...object, searchId: 'unknown' }), 404, 'Records[0].s3.object.key'],
    [direct({ ...object, name: 'unknown' }), 404, 'Records[0].s3.object.key'],
  ] as const) {
    const answer = await notify(one, body)
    assert.deepEqual([answer.status, answer.body.errors?.[0]?.field, answer.body.retryable], [status, field, false])
  }
  for (const bytes of ['', '?bytes=-1', '?bytes=x', '?bytes=536870913', '?bytes=1&bytes=2']) {
    const answer = await one.get(`/api/imports/${searchId}/files/a.ris/upload${bytes}`)
    assert.deepEqual([answer.status, answer.body.errors?.[0]?.field], [400, 'bytes'], answer.text)
  }
  assert.equal((await one.get(`/api/imports/${searchId}/files/b.ris/upload?bytes=1`)).status, 404)
})

test('the server calls no address that SNS sends; it is logged for an operator', async () => {
  let calls = 0
  const foreign = createServer((socket) => {
    calls++
    socket.destroy()
  }).listen(0, '127.0.0.1')
  foreign.unref()
  await once(foreign, 'listening')
  const SubscribeURL = `https://127.0.0.1:${(foreign.address() as AddressInfo).port}/?Action=ConfirmSubscription`
  const confirmation = { Type: 'SubscriptionConfirmation', TopicArn: TOPIC, SubscribeURL }
  assert.equal((await notify(one, confirmation, 'a-wrong-secret')).status, 401)
  const answer = await notifyAsSns(one, confirmation)
  assert.deepEqual([answer.status, answer.body['ignored']], [200, 1], answer.text)
  const [line] = await until(
    'the address is logged',
    () => one.events('imports.subscription_to_confirm'),
    ({ length }) => length > 0,
  )
  assert.deepEqual([line?.['topic'], line?.['url']], [TOPIC, SubscribeURL])
  const odd = await notifyAsSns(one, { ...confirmation, SubscribeURL: 'file:///etc/passwd' })
  assert.deepEqual([odd.status, odd.body.errors?.[0]?.field], [400, 'SubscribeURL'])
  assert.equal((await notifyAsSns(one, { ...confirmation, Type: 'UnsubscribeConfirmation' })).status, 200)
  assert.equal(calls, 0)
  foreign.close()
})

test('a bucket that is away is asked again, and doctor says so', async () => {
  const started = await startImport(one, ['a.ris'])
  const { searchId } = started
  const object = await uploadDirectly(one, searchId, 'a.ris', ris(1))
  const finding = async () => {
    const { findings } = (await one.console('/doctor')).body as unknown as {
      readonly findings: readonly { readonly name: string; readonly verdict: string; readonly found: string }[]
    }
    return findings.find(({ name }) => name === 'uploads')
  }
  assert.equal((await finding())?.verdict, 'ok')
  s3.away = true
  try {
    for (const answer of [await notify(one, direct(object)), await upload(one, started, 'a.ris', ris(1))]) {
      assert.deepEqual([answer.status, answer.body.retryable], [503, true], answer.text)
    }
    assert.match(JSON.stringify(await finding()), /"danger".*s3:\/\/uploads\/team-a cannot be used/)
  } finally {
    s3.away = false
  }
  assert.equal((await notify(one, direct(object))).status, 200)
  assert.equal((await ended(one, searchId)).state, 'Completed')
})

test('a file that is gone is not taken for another one', async () => {
  const { searchId } = await startImport(one, ['a.ris', 'b.ris'])
  const object = await uploadDirectly(one, searchId, 'a.ris', ris(1))
  await notify(one, direct(object))
  await s3.client.send(new DeleteObjectCommand({ Bucket: BUCKET_OF_TESTS, Key: `team-a/${searchId}/a.ris` }))
  const again = await upload(two, { searchId }, 'a.ris', ris(2))
  assert.deepEqual([again.status, again.body.type], [409, '/problems/file-already-uploaded'], again.text)
})

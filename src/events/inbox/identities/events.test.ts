import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { isOnceError } from '../../../ledger/core/errors.ts'
import { readCloudEvents } from './cloud-events.ts'
import { compareS3Sequencers, isStaleS3Event, readS3Notification } from './s3.ts'

function refuses(part: string, read: () => unknown): void {
  assert.throws(read, (error) => {
    assert.ok(isOnceError(error, 'unreadable_message'), String(error))
    assert.equal(error.details['part'], part)
    return true
  })
}

describe('S3 event notifications', () => {
  const object = { key: 'red+flower%C3%A9.jpg', size: 1024, eTag: 'd41d8cd98f', sequencer: '0055AED6DCD90281E5' }
  const record = (changes: object = {}, more: object = {}) => ({
    eventName: 'ObjectCreated:Put',
    s3: { configurationId: 'one', bucket: { name: 'mybucket' }, object: { ...object, ...changes } },
    ...more,
  })
  const read = (...records: unknown[]) => readS3Notification(JSON.stringify({ Records: records }))
  const idOf = (...given: Parameters<typeof record>) => read(record(...given))[0]?.message.id

  test('bucket, decoded key, version and sequencer are the identity', () => {
    const [event] = read(record())
    assert.ok(event !== undefined)
    const { message, ...fields } = event
    const expected = {
      bucket: 'mybucket',
      key: 'red floweré.jpg',
      version: 'd41d8cd98f',
      etag: 'd41d8cd98f',
      sequencer: '0055AED6DCD90281E5',
      name: 'ObjectCreated:Put',
      size: 1024,
    }
    assert.deepEqual(fields, expected)
    assert.deepEqual(JSON.parse(message.body), expected)
    assert.equal(message.topic, 's3.ObjectCreated:Put')
    assert.equal(read(record({ versionId: 'v7' }))[0]?.version, 'v7')
  })

  test('copies of an event share its id and body, other events have others', () => {
    const [first] = read(record())
    const [copy] = read(
      record({ sequencer: object.sequencer.toLowerCase() }, { eventTime: 'later', eventName: 's3:ObjectCreated:Put' }),
    )
    assert.equal(copy?.message.id, first?.message.id)
    const changes = [{ key: 'b' }, { eTag: 'x' }, { sequencer: '0055AED6DCD90281E6' }, { versionId: 'v1' }]
    const ids = [idOf(), ...changes.map((change) => idOf(change)), idOf({}, { eventName: 'ObjectRemoved:Delete' })]
    assert.equal(new Set(ids).size, ids.length)
  })

  test('a notification may hold several events, come through SNS, or be only a test', () => {
    assert.equal(read(record(), record({ key: 'b' })).length, 2)
    const wrapped = { Type: 'Notification', Message: JSON.stringify({ Records: [record()] }) }
    assert.equal(readS3Notification(JSON.stringify(wrapped))[0]?.message.id, idOf())
    assert.deepEqual(readS3Notification('{"Service":"Amazon S3","Event":"s3:TestEvent"}'), [])
  })

  test('what is wrong is named', () => {
    refuses('body', () => readS3Notification('{'))
    refuses('body', () => readS3Notification('[]'))
    refuses('Records', () => readS3Notification('{}'))
    refuses('Message', () => readS3Notification('{"Type":"Notification","Message":"[]"}'))
    refuses('Records[0]', () => read(null))
    refuses('Records[1].s3', () => read(record(), {}))
    refuses('Records[0].s3.bucket', () => read({ s3: {} }))
    refuses('Records[0].s3.object.key', () => read(record({ key: '' })))
    refuses('Records[0].s3.object.key', () => read(record({ key: '%zz' })))
    refuses('Records[0].s3.object.sequencer', () => read(record({ sequencer: 'xyz' })))
    refuses('Records[0].s3.object.eTag', () => read(record({ eTag: 7 })))
    refuses('Records[0].s3.object', () => read(record({ eTag: undefined, sequencer: undefined })))
    refuses('Records[0].eventName', () => read(record({}, { eventName: undefined })))
  })

  test('sequencers are compared as fractions: filled up on the right, whatever their case', () => {
    assert.ok(compareS3Sequencers('0055AED6DCD90281E5', '0055AED6DCD90281E6') < 0)
    assert.ok(compareS3Sequencers('01', '00FF') > 0, 'the longer one is not the larger one')
    assert.equal(compareS3Sequencers('00a', '00A000'), 0)
    refuses('sequencer', () => compareS3Sequencers('', '1'))
    const hex = fc.string({ unit: fc.constantFrom(...'0123456789abcdefABCDEF'.split('')), minLength: 1, maxLength: 20 })
    const valueOf = (text: string) => BigInt(`0x${text.padEnd(20, '0')}`)
    fc.assert(
      fc.property(hex, hex, (a, b) => {
        const difference = valueOf(a) - valueOf(b)
        assert.equal(compareS3Sequencers(a, b), difference === 0n ? 0 : difference < 0n ? -1 : 1)
      }),
    )
  })

  test('an older event is stale, the same one and those without an order are not', () => {
    assert.ok(isStaleS3Event({ sequencer: '01' }, '02'))
    assert.ok(!isStaleS3Event({ sequencer: '02' }, '02'))
    assert.ok(!isStaleS3Event({ sequencer: '03' }, '02'))
    assert.ok(!isStaleS3Event({ sequencer: null }, '02'))
    assert.ok(!isStaleS3Event({ sequencer: '01' }, null))
  })
})

describe('CloudEvents', () => {
  const event = { specversion: '1.0', id: 'A234', source: '/orders', type: 'order.placed', data: { n: 1 } }
  const structured = (changes: object = {}) =>
    readCloudEvents({
      headers: { 'Content-Type': 'application/cloudevents+json; charset=utf-8' },
      body: JSON.stringify({ ...event, ...changes }),
    })
  const binaryHeaders = { 'ce-specversion': '1.0', 'ce-id': 'A234', 'ce-source': '/orders', 'ce-type': 'order.placed' }
  const binary = (changes: object = {}, body = '{"n":1}') =>
    readCloudEvents({ headers: { 'content-type': 'application/json', ...binaryHeaders, ...changes }, body })

  test('source and id together are the identity, in every mode', () => {
    const [one] = structured()
    const [two] = binary()
    assert.equal(one?.id, '["/orders","A234"]')
    assert.deepEqual([two?.id, two?.topic, two?.body], [one.id, one.topic, one.body])
    assert.equal(one.headers['ce-type'], 'order.placed')
    const batch = readCloudEvents({
      headers: { 'content-type': 'application/cloudevents-batch+json' },
      body: JSON.stringify([event, { ...event, id: 'B' }]),
    })
    assert.deepEqual(
      batch.map(({ id }) => id),
      ['["/orders","A234"]', '["/orders","B"]'],
    )
    assert.notEqual(structured({ source: '/a","b', id: 'c' })[0]?.id, structured({ source: '/a', id: 'b","c' })[0]?.id)
  })

  test('data may be missing or encoded; the partition key is the key', () => {
    assert.equal(structured({ data: undefined })[0]?.body, 'null')
    assert.equal(binary({}, '')[0]?.body, 'null')
    const encoded = Buffer.from('{"n":2}').toString('base64')
    assert.equal(structured({ data: undefined, data_base64: encoded })[0]?.body, '{"n":2}')
    assert.equal(structured({ partitionkey: 'k' })[0]?.key, 'k')
    assert.equal(binary({ 'ce-partitionkey': 'k%20%C3%A9' })[0]?.key, 'k é')
  })

  test('an event is the same message in every mode, whatever its data are', () => {
    const plain = { datacontenttype: 'text/plain; charset=utf-8', data: 'hello' }
    const binaryPlain = binary({ 'content-type': 'text/plain' }, 'hello')
    assert.equal(structured(plain)[0]?.body, binaryPlain[0]?.body)
    assert.equal(structured({ ...plain, datacontenttype: 'application/vnd.x+json' })[0]?.body, '"hello"')
    const encoded = { data: undefined, data_base64: Buffer.from('hello').toString('base64') }
    assert.equal(structured(encoded)[0]?.body, 'hello')
    assert.equal(structured({ data: null, partitionkey: 7 })[0]?.key, null)
  })

  test('what was made to break a reader is refused like anything else', () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
    const odd = (member: string) => () =>
      readCloudEvents({
        headers: { 'content-type': 'application/cloudevents+json' },
        body: JSON.stringify(event).replace('"data"', `${member},"data"`),
      })
    refuses('x', odd('"x":{"toString":1,"valueOf":1}'))
    refuses('x', odd(`"x":${deep}`))
    refuses('data', () =>
      readCloudEvents({
        headers: { 'content-type': 'application/cloudevents+json' },
        body: JSON.stringify({ ...event, data: 0 }).replace('"data":0', `"data":${deep}`),
      }),
    )
    refuses('data', () => structured({ data_base64: 'e30=' }))
    for (const data_base64 of ['!', 'e30=!', 'e', '====', 'e30==', 7, {}]) {
      refuses('data_base64', () => structured({ data: undefined, data_base64 }))
    }
    const ids = ['__proto__', 'a\0b', '\ud800', 'x'.repeat(100_000)]
    assert.equal(new Set(ids.map((id) => structured({ id })[0]?.id)).size, ids.length)
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom(...Object.keys(event), 'data_base64', 'x'), fc.jsonValue()),
        (changes) => {
          try {
            assert.equal(structured(changes).length, 1)
          } catch (error) {
            assert.ok(isOnceError(error, 'unreadable_message'), String(error))
          }
        },
      ),
    )
  })

  test('what is wrong is named', () => {
    for (const name of ['specversion', 'id', 'source', 'type']) {
      refuses(name, () => structured({ [name]: undefined }))
      refuses(`ce-${name}`, () => binary({ [`ce-${name}`]: undefined }))
    }
    refuses('specversion', () => structured({ specversion: '0.3' }))
    refuses('ce-source', () => binary({ 'ce-source': '%e9' }))
    refuses('data_base64', () => structured({ data: undefined, data_base64: 1 }))
    const headers = { 'content-type': 'application/cloudevents-batch+json' }
    refuses('body', () => readCloudEvents({ headers, body: '{}' }))
    refuses('body[0]', () => readCloudEvents({ headers, body: '[1]' }))
  })
})

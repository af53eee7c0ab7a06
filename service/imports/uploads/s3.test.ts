import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { notificationOf } from './notification.ts'
import { readNotification } from './s3.ts'
import { knowsSecret } from './secret.ts'

const file = { etag: 'e1', bytes: 3 }
const storedAt = 1_700_000_000_000
const announced = (key: string, etag = file.etag) =>
  JSON.stringify(notificationOf({ bucket: 'b', key, file: { ...file, etag }, storedAt }))

test('what the storage announces is what the hook reads, whatever the file is called', () => {
  const name = fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => !/[/\0]/.test(text))
  fc.assert(
    fc.property(name, (each) => {
      const read = readNotification(announced(`imports/s-1/${each}`))
      assert.ok('created' in read)
      const [{ searchId, name: found } = { searchId: '', name: '' }] = read.created
      assert.deepEqual([searchId, found], ['s-1', each])
    }),
  )
})

test('copies of a notification have one id; other content has another', () => {
  const idOf = ({ name = 'a', etag = 'e1' }) => {
    const read = readNotification(announced(`s/${name}`, etag))
    return 'created' in read ? read.created[0]?.message.id : null
  }
  assert.equal(idOf({}), idOf({}))
  assert.notEqual(idOf({}), idOf({ etag: 'e2' }))
  assert.notEqual(idOf({}), idOf({ name: 'b' }))
})

const record = (key: string, eventName = 'ObjectCreated:Put') => ({
  eventName,
  s3: { bucket: { name: 'b' }, object: { key, eTag: 'e' } },
})
const notification = (...records: readonly unknown[]) => JSON.stringify({ Records: records })

for (const [name, body, field] of [
  ['not JSON', '{', 'body'],
  ['a list', '[]', 'body'],
  ['null', 'null', 'body'],
  ['no records', '{}', 'Records'],
  ['too many records', notification(...Array.from({ length: 101 }, () => record('s/a'))), 'Records'],
  ['a record that is null', notification(null), 'Records[0]'],
  ['a record without an object', notification({ eventName: 'ObjectCreated:Put', s3: {} }), 'Records[0].s3.bucket'],
  ['a key without a search', notification(record('s/a'), record('a.ris')), 'Records[1].s3.object.key'],
  ['a key that cannot be decoded', notification(record('s/%E0%A4%A')), 'Records[0].s3.object.key'],
  ['a key with a NUL', notification(record('s/%00')), 'Records[0].s3.object.key'],
] as const) {
  test(`${name}: the field that is wrong is named`, () => {
    const read = readNotification(body)
    assert.deepEqual('errors' in read ? read.errors.map((error) => error.field) : null, [field])
  })
}

test('tests and removals are taken, and mean nothing', () => {
  const removal = record('s/a', 'ObjectRemoved:Delete')
  assert.deepEqual(readNotification('{"Service":"Amazon S3","Event":"s3:TestEvent"}'), { created: [], ignored: 1 })
  assert.deepEqual(readNotification(JSON.stringify({ Records: [removal] })), { created: [], ignored: 1 })
})

test('whatever comes is read or refused', () => {
  fc.assert(fc.property(fc.json(), (text) => void readNotification(text)))
})

test('only a sender of the secret, or of a signature with it, is known', () => {
  const body = Buffer.from('{"Records":[]}')
  const sign = (secret: string) => `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
  const known = (headers: Record<string, string>) => knowsSecret('the-secret', headers, body)
  assert.equal(known({ authorization: 'Bearer the-secret' }), true)
  assert.equal(known({ 'x-hook-secret': 'the-secret' }), true)
  assert.equal(known({ 'x-hook-signature': sign('the-secret') }), true)
  for (const headers of [
    {},
    { authorization: 'Bearer another' },
    { authorization: 'the-secret' },
    { 'x-hook-secret': '' },
    { 'x-hook-secret': 'the-secret ' },
    { 'x-hook-signature': sign('another') },
    { 'x-hook-signature': 'sha256=' },
    { 'x-hook-signature': 'the-secret' },
    // A signature that is wrong is not made up for by anything else.
    { 'x-hook-signature': sign('another'), 'x-hook-secret': 'the-secret' },
  ]) {
    assert.equal(known(headers), false, JSON.stringify(headers))
  }
})

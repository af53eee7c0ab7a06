import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from './config.ts'

const uploads = (text: string) => readConfig({ ONCEONLY_UPLOADS: text }).uploads

test('uploads are kept in the data folder, in another folder or in a bucket', () => {
  assert.deepEqual(uploads(''), { kind: 'own folder' })
  assert.deepEqual(uploads('/mnt/shared'), { kind: 'folder', path: '/mnt/shared' })
  assert.deepEqual(uploads('s3://my-uploads'), { kind: 'bucket', name: 'my-uploads', prefix: '' })
  assert.deepEqual(uploads('s3://my-uploads/a/b/'), { kind: 'bucket', name: 'my-uploads', prefix: 'a/b' })
})

for (const text of [
  's3://',
  's3:///prefix',
  's3://No-Capitals/x',
  's3://my-uploads//x',
  's3://my-uploads/a b',
  `s3://my-uploads/${'x'.repeat(257)}`,
  'gs://my-uploads/x',
  'https://my-uploads.example/x',
  'a\0b',
]) {
  test(`${JSON.stringify(text.slice(0, 40))} stops the start`, () => {
    assert.throws(() => uploads(text), { name: 'BadSetting', message: /^ONCEONLY_UPLOADS: / })
  })
}

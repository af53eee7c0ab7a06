import { after, test } from 'node:test'
import { storeConformance } from 'onceonly/testing'
import { redisSubjects } from './subjects.ts'

const url = process.env['ONCEONLY_TEST_REDIS_URL']

if (url === undefined) {
  if (process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_REDIS_URL is not set')
  test('Redis', { skip: 'no Redis server' }, () => {})
} else {
  const subjects = redisSubjects(url)
  after(() => subjects.end())
  storeConformance({ test, open: subjects.open, histories: 15 })
}

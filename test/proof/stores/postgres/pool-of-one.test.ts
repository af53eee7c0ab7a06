import { after, test } from 'node:test'
import { storeConformance } from 'onceonly/testing'
import { postgresSubjects } from '../../../contract/stores/subjects.ts'

const url = process.env['ONCEONLY_TEST_POSTGRES_URL']

if (url === undefined) {
  if (process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_POSTGRES_URL is not set')
  test('PostgreSQL on one connection', { skip: 'no PostgreSQL server' }, () => {})
} else {
  const subjects = await postgresSubjects(url, { max: 1 })
  after(() => subjects.end())
  storeConformance({ test, open: subjects.open, histories: 10 })
}

import { after, test } from 'node:test'
import { storeConformance } from 'onceonly/testing'
import { postgresSubjects } from './subjects.ts'

const url = process.env['ONCEONLY_TEST_POSTGRES_URL']

if (url === undefined) {
  if (process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_POSTGRES_URL is not set')
  test('PostgreSQL', { skip: 'no PostgreSQL server' }, () => {})
} else {
  const subjects = await postgresSubjects(url)
  after(() => subjects.end())
  storeConformance({ test, open: subjects.open, histories: 30 })
}

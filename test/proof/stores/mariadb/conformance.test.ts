import { test } from 'node:test'
import { storeConformance } from 'onceonly/testing'
import { openSubject } from '../../../support/stores/mariadb/subject.ts'

const url = process.env['ONCEONLY_TEST_MARIADB_URL']

if (url === undefined) {
  if (process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_MARIADB_URL is not set')
  test('MariaDB', { skip: 'no MariaDB server' }, () => {})
} else {
  storeConformance({ test, open: () => openSubject(url), histories: 30 })
}

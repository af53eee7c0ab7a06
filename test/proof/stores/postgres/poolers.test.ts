import { after, test } from 'node:test'
import { storeConformance } from 'onceonly/testing'
import { keepsStatements, startPgbouncer } from '../../../../tools/servers/pgbouncer.ts'
import { postgresSubjects } from '../../../contract/stores/subjects.ts'

const url = process.env['ONCEONLY_TEST_POSTGRES_URL']

if (url === undefined) {
  if (process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_POSTGRES_URL is not set')
  test('PostgreSQL behind a pooler', { skip: 'no PostgreSQL server' }, () => {})
} else {
  await through(url, 'PgBouncer', keepsStatements() ? { max_prepared_statements: 0 } : {})
  // The setting came with PgBouncer 1.21.
  if (keepsStatements()) await through(url, 'PgBouncer that keeps statements', { max_prepared_statements: 100 })
  else test('PgBouncer that keeps statements', { skip: 'PgBouncer is older than 1.21' }, () => {})
}

async function through(server: string, name: string, settings: Readonly<Record<string, number>>): Promise<void> {
  const pooler = await startPgbouncer(server, settings)
  if (pooler === null) {
    test(name, { skip: 'no PgBouncer' }, () => {})
    return
  }
  const subjects = await postgresSubjects(server, { pooler: pooler.url })
  after(async () => {
    await pooler.stop()
    await subjects.end()
  })
  storeConformance({ test: (title, body) => test(`${name}: ${title}`, body), open: subjects.open, histories: 10 })
}

import { after, before, describe, test } from 'node:test'
import { postgresStore } from 'onceonly/postgres'
import { httpConformance } from 'onceonly/testing'
import { Pool } from 'pg'
import { createDatabase } from '../../../tools/servers/database.ts'
import { serveFastify } from './fastify.ts'
import { groundOf } from './ground.ts'

const postgresUrl = process.env['ONCEONLY_TEST_POSTGRES_URL']
if (postgresUrl === undefined && process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_POSTGRES_URL is not set')

describe('postgres', { skip: postgresUrl === undefined ? 'no PostgreSQL server' : false }, () => {
  let place: { readonly pool: Pool; end(): Promise<void> } | undefined

  before(async () => {
    const database = await createDatabase(postgresUrl as string)
    const pool = new Pool({ connectionString: database.url, max: 20 })
    pool.on('error', () => {})
    place = { pool, end: () => pool.end().then(() => database.drop()) }
  })
  after(() => place?.end())

  httpConformance({
    test,
    serve: serveFastify,
    // One database for all of them: every case has a tenant of its own.
    open: () => {
      if (place === undefined) throw new Error('there is no database')
      const store = postgresStore(place.pool, { testClock: true })
      return groundOf(store, () => store.stop())
    },
  })
})

import fc from 'fast-check'
import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'
import { history } from '../../../support/stores/postgres/nested.ts'
import { placeOf, play } from '../../../support/stores/postgres/nested-kills.ts'

/** Runs random effects until it is killed, and reports each before it begins. */

const [, , url = '', schema = '', name = '', seed = '0', count = '0'] = process.argv
const pool = new Pool({ connectionString: url, application_name: name, max: 4 })
pool.on('error', () => undefined)
const place = placeOf(createLedger({ store: postgresStore(pool, { schema }), background: false }))
const histories = fc.sample(history, { seed: Number(seed), numRuns: Number(count) })
for (const [index, each] of histories.entries()) {
  const key = `${name}.${index}`
  process.send?.(key)
  await play(place, key, each)
}
process.send?.(null)

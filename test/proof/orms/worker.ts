import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'
import { allRows } from './rows.ts'

/** Stops with two transactions open, after the rows of their effects were written: `kill.ts` ends it there. */

const [name, url = '', key = ''] = process.argv.slice(2)
const row = (await allRows()).find((each) => each.name === name)
if (row === undefined) throw new Error(`There is no ${name}`)
const orm = await row.open(url)
const { transactions } = orm
const store = postgresStore(new Pool({ connectionString: url }))
const ledger = createLedger({ store, transactions, background: false })
const place = ledger.operation<string>({ name: 'order.place', effect: 'transaction' })
const who = (of: string) => ({ tenant: 'acme', caller: 'web', key: `${key}-${of}` })

const written = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
const forEver = new Promise<never>(() => setInterval(() => {}, 60_000))

const byLedger = place.run(who('run'), `${key}-run`, async ({ tx }) => {
  await orm.insert(tx, `${key}-run`)
  written[0].resolve()
  await forEver
})
const byUser = orm.transaction(async (handle) => {
  await place.within(handle, who('within'), `${key}-within`, ({ tx }) => orm.insert(tx, `${key}-within`))
  written[1].resolve()
  await forEver
})
await Promise.race([byLedger, byUser, Promise.all(written.map(({ promise }) => promise))])
process.send?.('inside')

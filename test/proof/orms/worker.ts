import { createLedger } from 'onceonly'
import { allRows } from './rows.ts'
import { storeOf } from './stores.ts'

/** Stops with one transaction open, or with two, after the rows of their effects were written: `kill.ts` ends it there. */

const [name, url = '', key = '', which = 'both'] = process.argv.slice(2)
const on = process.env['ONCEONLY_ORM'] === 'sqlite' ? 'file' : 'server'
const row = (await allRows(on)).find((each) => each.name === name)
if (row === undefined) throw new Error(`There is no ${name}`)
const orm = await row.open(url)
const { transactions } = orm
const store = storeOf(row, url)
const ledger = createLedger({ store, transactions, background: false })
const place = ledger.operation<string>({ name: 'order.place', effect: 'transaction' })
const who = (of: string) => ({ tenant: 'acme', caller: 'web', key: `${key}-${of}` })

const written = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
const forEver = new Promise<never>(() => setInterval(() => {}, 60_000))

const byLedger = () =>
  place.run(who('run'), `${key}-run`, async ({ tx }) => {
    await orm.insert(tx, `${key}-run`)
    written[0].resolve()
    await forEver
  })
const byUser = () =>
  orm.transaction(async (handle) => {
    await place.within(handle, who('within'), `${key}-within`, ({ tx }) => orm.insert(tx, `${key}-within`))
    written[1].resolve()
    await forEver
  })
const begun = { run: [byLedger], within: [byUser], both: [byLedger, byUser] }[which] ?? []
const inside = written.filter((_, index) => which === 'both' || index === (which === 'run' ? 0 : 1))
await Promise.race([...begun.map((begin) => begin()), Promise.all(inside.map(({ promise }) => promise))])
process.send?.('inside')

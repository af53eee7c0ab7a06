import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger, final } from 'onceonly'
import { sqliteStore } from 'onceonly/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const store = sqliteStore(join(folder, 'shop.db'))
const once = createLedger({ store })
await store.sql.query('create table payments (reference text not null, cents integer not null)')

interface Payment {
  readonly reference: string
  readonly cents: number
}

const pay = once.operation<Payment>({ name: 'payment.create', effect: 'transaction' })
const create = (key: string, payment: Payment) =>
  pay.run({ tenant: 'acme', caller: 'shop', key }, payment, async ({ tx, unique }) => {
    // Claimed for good, and committed with the payment: no retention ever frees it.
    const claim = await unique('payment.merchantReference', payment.reference)
    if (claim.kind === 'taken') throw final(new Error(`${payment.reference} has been paid.`))
    await tx.query('insert into payments (reference, cents) values (?, ?)', [payment.reference, payment.cents])
    return { reference: payment.reference }
  })

await create('click-1', { reference: 'INV-7', cents: 4200 })
// The same click again: a replay.
await create('click-1', { reference: 'INV-7', cents: 4200 })
// Another click, perhaps a year later, for the same invoice: refused.
await assert.rejects(create('click-2', { reference: 'INV-7', cents: 4200 }), /INV-7 has been paid/)
assert.equal((await store.sql.query('select reference from payments')).length, 1)

// Outside of an effect, with an owner of your own: the same owner may ask again.
const name = await once.unique('acme', 'workspace.slug', 'blue-moon', { owner: 'workspace-17' })
assert.equal(name.kind, 'claimed')
const other = await once.unique('acme', 'workspace.slug', 'blue-moon', { owner: 'workspace-18' })
assert.ok(other.kind === 'taken' && other.owner === 'workspace-17')

console.log('three payments for one invoice, one of them made')
await once.stop()
rmSync(folder, { recursive: true })

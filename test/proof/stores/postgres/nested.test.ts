import { createLedger } from 'onceonly'
import { checkNestedHistories } from '../../../support/stores/postgres/nested.ts'
import { openStore, testPostgres } from '../../../support/stores/postgres/store.ts'

/** `ONCEONLY_HISTORIES` sets how many. */
const histories = Number(process.env['ONCEONLY_HISTORIES'] ?? 2_000)

testPostgres(`${histories} random effects with nested parts leave the rows that their records name`, async (t) => {
  const store = await openStore(t)
  const up = () => ['CREATE TABLE orders (name text PRIMARY KEY)']
  await store.sql.migrate('shop', [{ version: 1, oldestCode: 1, up }])
  const ledger = createLedger({ store, background: false })
  t.after(() => ledger.stop())
  await checkNestedHistories({ store, ledger, histories })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRows } from './rows.ts'

test('an outbox that was empty is asked for one row, not for every partition', async () => {
  const asked: string[] = []
  let any = false
  const sql = {
    // The texts that it writes are of no interest here.
    dialect: new Proxy({}, { get: () => () => '' }),
    now: 'now()',
    query: async (text: string) => {
      asked.push(text.includes('UNION ALL') ? 'partitions' : 'any')
      return text.includes('UNION ALL') || !any ? [] : [{ found: 1 }]
    },
  }
  const { next } = createRows({ sql, transactions: {} } as never)
  const wanted = [0, 1, 2].map((partition) => ({ partition, rows: 10 }))
  const look = async () => {
    asked.length = 0
    await next(wanted)
    return [...asked]
  }
  assert.deepEqual(await look(), ['partitions'])
  assert.deepEqual(await look(), ['any'])
  assert.deepEqual(await look(), ['any'])
  assert.equal((await next(wanted)).isEmpty, true)
  assert.equal((await next([])).isEmpty, false, 'a relay without a lease has not looked, and must not sleep for long')
  any = true
  assert.deepEqual(await look(), ['any', 'partitions'], 'what came is found in the same look')
})

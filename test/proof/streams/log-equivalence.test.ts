import assert from 'node:assert/strict'
import { createSqlRoomLog } from '../../../src/streams/log/sql.ts'
import { createSqlOrderLog } from '../../../src/streams/log/sql-order.ts'
import { clockOf, onEverySqlStore } from '../../support/streams/stores.ts'
import { compareLogs, sameNames } from './log-history.ts'
import { compareOrders } from './order-history.ts'

onEverySqlStore('a log in the store does what the log in memory does, on random histories', async (given) => {
  const { store, another } = given
  const clock = clockOf(store)
  const second = another()
  for (let seed = 1; seed <= 8; seed++) {
    const processes = [store, second].map((each) => createSqlRoomLog({ store: each, region: 'eu', runtime: sameNames }))
    assert.equal(await compareLogs({ processes, clock, seed }), null)
  }
})

onEverySqlStore('a final order in the store is what it is in memory, on random histories', async (given) => {
  const { store, another } = given
  const clock = clockOf(store)
  const processes = [store, another()].map((each) => createSqlOrderLog({ store: each }))
  for (let seed = 1; seed <= 8; seed++) assert.equal(await compareOrders({ processes, clock, seed }), null)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LedgerEvent } from '../../ledger/events.ts'
import { ledgerLine } from './ledger-line.ts'

const identity = { tenant: 'acme', caller: 'shop', operation: 'pay', key: 'order-4711' }

test('an outcome that became unknown is a warning with the id of its record, any other outcome is not', () => {
  const settled = (state: 'unknown' | 'succeeded'): LedgerEvent => ({ kind: 'settled', identity, state, attempt: 1 })
  const { level, event, record, state } = ledgerLine(settled('unknown'))
  assert.deepEqual([level, event, typeof record, state], ['warn', 'ledger.settled', 'string', 'unknown'])
  assert.equal(ledgerLine(settled('succeeded')).level, 'debug')
})

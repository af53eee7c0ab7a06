import assert from 'node:assert/strict'
import { test } from 'node:test'
import { numberPlaceholders, transactionControlOf } from './sql-text.ts'

test('a comment ends with its line, whichever way the line ends', () => {
  for (const end of ['\n', '\r\n', '\r']) {
    assert.equal(transactionControlOf(`-- notes${end}COMMIT`)?.kind, 'commit', JSON.stringify(end))
    assert.equal(transactionControlOf(`SELECT 1 -- notes${end}; COMMIT`)?.kind, 'refused', JSON.stringify(end))
    assert.equal(numberPlaceholders(`SELECT 1 -- why?${end}, ?`), `SELECT 1 -- why?${end}, $1`)
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { csvOf } from './export.ts'

test('rows become one table: nested members have names of their own, and missing ones stay empty', () => {
  const rows = [
    { id: 'a', identity: { key: 'k1' }, tags: ['x', 'y'] },
    { id: 'b', at: 5, none: null },
  ]
  assert.equal(csvOf(rows), 'id,identity.key,tags,at,none\r\na,k1,"[""x"",""y""]",,\r\nb,,,5,\r\n')
})

test('quotes, commas and line breaks are quoted, and no cell begins a formula', () => {
  const rows = [{ text: 'a "b", c\nd' }, { text: '=cmd()' }, { text: '-1' }, { text: -1 }]
  assert.equal(csvOf(rows), 'text\r\n"a ""b"", c\nd"\r\n\'=cmd()\r\n\'-1\r\n-1\r\n')
})

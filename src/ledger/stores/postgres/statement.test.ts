import assert from 'node:assert/strict'
import { test } from 'node:test'
import { arraysOf, scriptOf } from './statement.ts'

test('columns of rows are written as arrays of the server', () => {
  const rows = [
    ['a', 1, null],
    ['say "hi" \\ {x,y}', -2.5, ''],
    ['NULL', 0, 'ü 💳'],
  ]
  assert.deepEqual(arraysOf(rows), ['{"a","say \\"hi\\" \\\\ {x,y}","NULL"}', '{1,-2.5,0}', '{NULL,"","ü 💳"}'])
})

test('values of a script are written out, unless text would end at a NUL character', () => {
  const { name, execute } = scriptOf('SELECT $1, $2, $3')
  assert.equal(execute([`it's`, 'a\\b', null, 7]), `EXECUTE ${name} ('it''s', E'a\\\\b', NULL, 7)`)
  assert.equal(execute(['a\0b']), null)
})

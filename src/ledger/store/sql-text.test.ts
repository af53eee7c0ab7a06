import assert from 'node:assert/strict'
import { test } from 'node:test'
import { numberPlaceholders, transactionControlOf } from './sql-text.ts'

const same = [
  "SELECT '?', 'it''s ?', \"a ?\"",
  "SELECT E'it\\'s ?', e'\\\\', E'\\\\\\'?'",
  "SELECT U&'?', N'?', B'1'",
  'SELECT $$ ? $$, $tag$ ? $$ ? $tag$, $été_1$ ? $été_1$',
  'SELECT 1 -- really?\n, 2 /* ? /* ? */ ? */',
  'SELECT $1, $2',
  "SELECT 'never closed ?",
  'SELECT 1 /* never closed ?',
  'SELECT $a$ never closed ? $b$',
]
for (const text of same) {
  test(`nothing is a place in ${JSON.stringify(text)}`, () => assert.equal(numberPlaceholders(text), text))
}

const numbered: readonly (readonly [string, string])[] = [
  ['SELECT ?, ?', 'SELECT $1, $2'],
  ["SELECT 'a' || ? -- b?\n || ?", "SELECT 'a' || $1 -- b?\n || $2"],
  // A backslash is an ordinary character in an ordinary string, and a name may end in `e`.
  ["SELECT 'a\\', ?", "SELECT 'a\\', $1"],
  ["SELECT name'x\\', ?", "SELECT name'x\\', $1"],
  // A dollar inside of a name begins no string.
  ['SELECT a$b$, ?, a$b$', 'SELECT a$b$, $1, a$b$'],
  ['SELECT $1$ ?', 'SELECT $1$ $1'],
  ["SELECT data ?? 'a' AND data ??| ? AND data ??& ?", "SELECT data ? 'a' AND data ?| $1 AND data ?& $2"],
  ['SELECT a-?, b/?', 'SELECT a-$1, b/$2'],
  // A carriage return alone ends a comment, as PostgreSQL reads it.
  ['SELECT 1 -- really?\r, ?', 'SELECT 1 -- really?\r, $1'],
]
for (const [text, expected] of numbered) {
  test(`places are numbered in ${JSON.stringify(text)}`, () => assert.equal(numberPlaceholders(text), expected))
}

test('statements that begin or end a transaction are recognized', () => {
  const none = [
    'SELECT 1',
    "SELECT 'x; COMMIT'",
    'SELECT 1 AS "commit"; SELECT 2 -- ; ROLLBACK',
    'DO $$ BEGIN PERFORM 1; END $$',
    'CASE WHEN true THEN 1 END',
    'PREPARE name AS SELECT 1',
    'SELECT beginning FROM ends',
    '',
  ]
  for (const text of none) assert.equal(transactionControlOf(text), null, text)
  const some: readonly (readonly [string, unknown])[] = [
    ['begin', { kind: 'begin', isolation: null }],
    ['/* a */ BEGIN -- b\n WORK ;', { kind: 'begin', isolation: null }],
    ['BEGIN READ ONLY', { kind: 'begin', isolation: null }],
    ['start transaction isolation level serializable, read only', { kind: 'begin', isolation: 'serializable' }],
    ['COMMIT', { kind: 'commit' }],
    ['end transaction', { kind: 'commit' }],
    ['COMMIT AND NO CHAIN', { kind: 'commit' }],
    ['ROLLBACK WORK', { kind: 'rollback' }],
    ['abort', { kind: 'rollback' }],
    ['SAVEPOINT Sp1', { kind: 'savepoint', name: 'sp1' }],
    ['savepoint "Sp ""1"""', { kind: 'savepoint', name: 'Sp "1"' }],
    ['RELEASE sp1', { kind: 'release', name: 'sp1' }],
    ['rollback transaction to savepoint sp1', { kind: 'rollback_to', name: 'sp1' }],
    ['COMMIT AND CHAIN', { kind: 'refused', statement: 'COMMIT AND CHAIN' }],
    ["COMMIT PREPARED 'x'", { kind: 'refused', statement: "COMMIT PREPARED 'x'" }],
    ["PREPARE TRANSACTION 'x'", { kind: 'refused', statement: "PREPARE TRANSACTION 'x'" }],
    ['SELECT 1; COMMIT', { kind: 'refused', statement: 'COMMIT' }],
    ['BEGIN; SELECT 1', { kind: 'refused', statement: 'BEGIN' }],
  ]
  for (const [text, expected] of some) assert.deepEqual(transactionControlOf(text), expected, text)
})

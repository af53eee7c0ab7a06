import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oddWordsIn, tooMany } from './plain-words.ts'

/** Written in two parts, so that this file keeps the rule itself. */
const ODD = [
  'who' + 'ever',
  'No' + 'body',
  'some' + 'body',
  'Who' + ' asks',
  'is ' + 'told',
  'in' + ' vain',
  'shr' + 'ugs',
]

test('each odd word is found with its line, and says what to write instead', () => {
  for (const word of ODD) {
    const [found, ...others] = oddWordsIn('src/a.ts', `// fine\n// ${word} waits`)
    assert.deepEqual([found?.line, found?.word, others], [2, word, []])
    assert.ok(found?.instead)
  }
})

test('the Unix account and longer words are no odd words', () => {
  assert.deepEqual(oddWordsIn('tools/a.ts', `accounts: ['postgres', '${'no' + 'body'}'], untold shrugged`), [])
})

test('a clean place may have none; a place in the list may have as many as it says', () => {
  const words = oddWordsIn('src/old/a.ts', ODD.join(' ')).length
  const found = [...oddWordsIn('src/old/a.ts', ODD.join(' ')), ...oddWordsIn('src/older.ts', ODD[0] as string)]
  assert.deepEqual(
    tooMany(found, { 'src/old': words }).map(({ path }) => path),
    ['src/older.ts'],
  )
  assert.equal(tooMany(found, { 'src/old': words - 1 }).length, words + 1)
  assert.deepEqual(tooMany(found, { 'src/old': words, 'src/older.ts': 1 }), [])
})

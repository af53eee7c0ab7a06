import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oddWordsIn } from './plain-words.ts'

/** Written in two parts, so that this file keeps the rule itself. */
const ODD = [
  'who' + 'ever',
  'No' + 'body',
  'some' + 'body',
  'any' + 'body',
  'Who' + ' asks',
  'is ' + 'told',
  'goes ' + 'on',
  'for ' + 'ever',
  'in' + ' vain',
  'shr' + 'ugs',
  'falls ' + 'in with',
]

test('each odd word is found with its line, and says what to write instead', () => {
  for (const word of ODD) {
    const [found, ...others] = oddWordsIn(`// fine\n// ${word} waits`)
    assert.deepEqual([found?.line, found?.word, others], [2, word, []])
    assert.ok(found?.instead)
  }
})

test('a comment begins with the component', () => {
  assert.equal(oddWordsIn('/** ' + 'Whose key it is. */').length, 1)
  assert.deepEqual(oddWordsIn('// The key of the caller who asked.'), [])
})

test('the Unix account, names in code and longer words are no odd words', () => {
  assert.deepEqual(oddWordsIn(`accounts: ['postgres', '${'no' + 'body'}'], ${'no' + 'Body'}(), untold shrugged`), [])
})

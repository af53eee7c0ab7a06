import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginningOf } from './cut.ts'
import { quoteOf } from './said.ts'

test('a text is cut between its characters, also where one takes two units', () => {
  assert.equal(beginningOf('ab😀', 4), 'ab😀')
  assert.equal(beginningOf('ab😀c', 3), 'ab')
  assert.equal(beginningOf('ab😀c', 4), 'ab😀')
  assert.equal(beginningOf('', 4), '')
})

test('a quote is never cut within a character: a reply with half of one could not be sent', () => {
  for (let before = 100; before <= 125; before++) {
    const { text } = quoteOf({ name: 'Ada', text: `${'x'.repeat(before)}😀😀😀 and so on` })
    assert.ok(text.isWellFormed(), `${before} units before it`)
    assert.ok(text.length <= 120)
  }
})

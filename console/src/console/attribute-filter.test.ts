import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attributesOf, attributeText } from './attribute-filter.ts'

test('an attribute that a link writes is the one that the filter asks for, whatever its value looks like', () => {
  for (const value of ['c-1', '7', 7, true, 'true', '"quoted"', 'null', '{}', 'a=b', '', ' spaced ', 'with, comma']) {
    assert.deepEqual(JSON.parse(attributesOf(attributeText('customer', value))), { customer: value }, String(value))
  }
})

test('JSON stays as it is written, and what is neither is left for the server to refuse', () => {
  assert.equal(attributesOf('{"a":1,"b":"c"}'), '{"a":1,"b":"c"}')
  assert.equal(attributesOf('customer'), 'customer')
  assert.equal(attributesOf(''), '')
})

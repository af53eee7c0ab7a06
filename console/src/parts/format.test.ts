import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agoText, bytesText, durationText, shortCountText, storedText } from './format.ts'

test('durations have two units at most', () => {
  const texts = [0, 999, 1_500, 59_400, 60_000, 61_000, 3_600_000, 90_061_000, 86_400_000 * 3].map(durationText)
  assert.deepEqual(texts, ['0 ms', '999 ms', '1.5 s', '59 s', '1 min', '1 min 1 s', '1 h', '1 d 1 h', '3 d'])
  assert.equal(agoText(0, 5_000), '5.0 s ago')
  assert.equal(agoText(125_000, 5_000), 'in 2 min')
})

test('an axis has short numbers', () => {
  assert.deepEqual([0, 0.0033, 0.25, 7, 950, 1_200, 12_000, 3_400_000].map(shortCountText), [
    '0',
    '0.003',
    '0.3',
    '7',
    '950',
    '1.2k',
    '12k',
    '3.4M',
  ])
})

test('stored JSON gets its lines, other text stays as it is', () => {
  assert.equal(storedText('{"a":1}'), '{\n  "a": 1\n}')
  assert.equal(storedText('<script>'), '<script>')
  assert.equal(storedText({ a: 1 }), '{\n  "a": 1\n}')
})

test('bytes are in units of 1 024, with one digit where it says something', () => {
  assert.equal(bytesText(0), '0 bytes')
  assert.equal(bytesText(1_023), '1,023 bytes')
  assert.equal(bytesText(1_024), '1 KiB')
  assert.equal(bytesText(1_536), '1.5 KiB')
  assert.equal(bytesText(2 * 1_024 ** 3), '2 GiB')
  assert.equal(bytesText(5_000 * 1_024 ** 4), '5,000 TiB')
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom } from '../../testing/random.ts'
import { DECIMAL_BYTES_MOST, writeDecimal } from './canonical-decimal.ts'
import { canonicalNumber } from './canonical-number.ts'

function written(token: string): string | null {
  const source = Buffer.from(`[${token},`)
  const out = Buffer.alloc(DECIMAL_BYTES_MOST + 1, 0x23)
  const end = writeDecimal(source, 1, 1 + token.length, out, 0)
  assert.equal(out[DECIMAL_BYTES_MOST], 0x23, 'nothing is written past its room')
  return end < 0 ? null : out.subarray(0, end).toString('latin1')
}

const edges = `
  0 -0 0.0 0e5 -0.000e-10 1e0 1E21 1e20 1e+21 1e-6 1e-7 -1.50e3 123456789012345e6 0.000001 0.0000001
  1.23456789012345e-7 100e-2 1e290 1e-290 99999e285 1e291 12e22 1.2e21 0.1e1 0.00123e5 1e00000 1e0000001
  999999999999999e6 999999999999999e7 1000000000000000 1e-05
`

test('numbers with few digits are written as the exact rules write them', () => {
  for (const token of edges.trim().split(/\s+/)) {
    const text = written(token)
    if (text !== null) assert.equal(text, canonicalNumber(token), token)
  }
  assert.deepEqual(
    [written('1e21'), written('1e20'), written('-12.50e-8')],
    ['1e+21', `1${'0'.repeat(20)}`, '-1.25e-7'],
  )
  assert.deepEqual([written('1234567890123456'), written('1e291'), written('1e-400')], [null, null, null])
})

test('so are random ones', () => {
  const random = createRandom(7)
  let count = 0
  for (let n = 0; n < 30_000; n++) {
    const digitsOf = (most: number) => Array.from({ length: 1 + random.below(most) }, () => random.below(10)).join('')
    const whole = String(Number(digitsOf(9)))
    const fraction = random.chance(0.5) ? `.${digitsOf(9)}` : ''
    const sign = random.pick(['', '+', '-'])
    const exponent = random.chance(0.7) ? `${random.pick(['e', 'E'])}${sign}${digitsOf(3)}` : ''
    const token = `${random.pick(['', '-'])}${whole}${fraction}${exponent}`
    const text = written(token)
    if (text === null) continue
    count++
    assert.equal(text, canonicalNumber(token), token)
  }
  assert.ok(count > 15_000, `${count}`)
})

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { isOnceError } from '../core/errors.ts'
import { formText, MAX_PAIRS } from './form.ts'
import { mutations } from './test-mutate.ts'

const textOf = (form: string): string => formText(Buffer.from(form, 'latin1'))

suite('form', () => {
  test('spellings of the same pairs', () => {
    assert.equal(textOf('a=b+c'), textOf('a=b%20c'))
    assert.equal(textOf('%61=%62'), textOf('a=b'))
    assert.equal(textOf('a=%c3%A9'), formText(Buffer.from('a=é')))
    assert.equal(textOf('&a=1&&b&'), textOf('a=1&b='))
    assert.equal(textOf('a=1=2'), textOf('a=1%3D2'))
  })

  test('what differs', () => {
    const forms = [
      'a=1&b=2',
      'b=2&a=1',
      'a=1',
      'a=1&a=1',
      'a=1%26b=2',
      'a%3D1&b=2',
      'a=1+',
      'a=1%2B',
      '=a',
      'a',
      '%FF=',
      '%EF%BF%BD=',
      'A=1',
    ]
    const texts = [...forms, 'a=1&b=2&=', 'a=%00', 'a=1;b=2', 'a=12&b=', 'a=1&2b='].map(textOf)
    assert.equal(new Set(texts).size, texts.length)
  })

  test('an invalid percent-encoding is refused at its byte', () => {
    for (const [form, offset] of [
      ['a=%', 2],
      ['a=1&b+%zz=', 6],
      ['%4', 0],
      ['a=%41%4g', 5],
      ['x&&y=100%&z', 8],
    ] as const) {
      assert.throws(() => textOf(form), { code: 'bad_input', details: { reason: 'percent_encoding', offset } }, form)
    }
  })

  test('the number of pairs is bounded', () => {
    assert.ok(textOf('a&'.repeat(MAX_PAIRS)).length > 0)
    assert.throws(() => textOf('a&'.repeat(MAX_PAIRS + 1)), { code: 'bad_input' })
  })

  test('a megabyte that was made to be slow is not', () => {
    const size = 1_000_000
    for (const form of [
      '&'.repeat(size),
      '+'.repeat(size),
      '%41'.repeat(size / 3),
      '='.repeat(size),
      'a&'.repeat(size / 2),
    ]) {
      const bytes = Buffer.from(form)
      const started = performance.now()
      try {
        formText(bytes)
      } catch (error) {
        assert.ok(isOnceError(error, 'bad_input'))
      }
      const took = performance.now() - started
      assert.ok(took < 2_000, `${took} ms for ${form.slice(0, 6)}`)
    }
  })

  test('a view into a larger buffer is read where it is', () => {
    assert.equal(formText(Buffer.from('xxa=1xx').subarray(2, 5)), textOf('a=1'))
  })

  test('property: pairs as the platform reads them, for everything that is UTF-8', () => {
    const pairs = fc.array(fc.tuple(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' })), { maxLength: 5 })
    fc.assert(
      fc.property(pairs, pairs, (left, right) => {
        const one = new URLSearchParams(left).toString()
        const two = new URLSearchParams(right).toString()
        assert.equal(textOf(one) === textOf(two), JSON.stringify(left) === JSON.stringify(right))
        // Another spelling: everything encoded, spaces included.
        const encoded = left.map((pair) =>
          pair.map((text) => Buffer.from(text).toString('hex').replace(/../g, '%$&')).join('='),
        )
        assert.equal(textOf(encoded.join('&')), textOf(one))
      }),
    )
  })

  test('fuzz: 20 000 forms are read or refused with a byte', () => {
    const seeds = ['name=J%C3%BCrgen&amount=12.50&note=a+b&note=c%26d', 'a=1&b=2&&c', '%61%3d=%26&x=%FF%00']
    for (const bytes of mutations(seeds, 20_000, 3)) {
      try {
        formText(bytes)
      } catch (error) {
        assert.ok(isOnceError(error, 'bad_input'))
        const { offset } = error.details
        assert.ok(typeof offset === 'number' && bytes[offset] === 0x25)
      }
    }
  })
})

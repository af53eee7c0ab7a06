import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { isOnceError } from '../../ledger/core/errors.ts'
import { formText, MAX_PAIRS } from './form.ts'
import { mutations } from './test-mutate.ts'

const textOf = (form: string): string => formText(Buffer.from(form, 'latin1'))

type Pairs = [name: string, value: string][]

/** In the order of the names, up to a bracket; those that share one stay as they stand. */
function byName(pairs: Pairs): Pairs {
  const headOf = ([name]: [string, string]) => name.split('[', 1)[0] ?? ''
  return pairs.toSorted((one, other) => Buffer.compare(Buffer.from(headOf(one)), Buffer.from(headOf(other))))
}

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

  test('the order of different names does not count, as in JSON', () => {
    assert.equal(textOf('b=2&a=1'), textOf('a=1&b=2'))
    assert.equal(textOf('amount=5&metadata[x]=1&currency=eur'), textOf('currency=eur&amount=5&metadata%5Bx%5D=1'))
    assert.equal(textOf('b=2&a=1&b=3'), textOf('b=2&b=3&a=1'))
  })

  test('the order within one name counts, brackets or not: parsers make lists and later winners of it', () => {
    for (const [one, other] of [
      ['a=1&a=2', 'a=2&a=1'],
      ['a[]=1&a[]=2', 'a[]=2&a[]=1'],
      ['a[][p]=1&a[][p]=2&a[][q]=3', 'a[][p]=1&a[][q]=3&a[][p]=2'],
      ['a[5]=1&a[]=2', 'a[]=2&a[5]=1'],
      ['a=1&a[b]=2', 'a[b]=2&a=1'],
    ] as const) {
      assert.notEqual(textOf(one), textOf(other), one)
    }
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
    // Work that grows with the square of it would take longer than a test may.
    const size = 3_000_000
    for (const form of [
      '&'.repeat(size),
      '+'.repeat(size),
      '%41'.repeat(size / 3),
      '='.repeat(size),
      'a&'.repeat(size / 2),
    ]) {
      const bytes = Buffer.from(form)
      try {
        formText(bytes)
      } catch (error) {
        assert.ok(isOnceError(error, 'bad_input'))
      }
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
        assert.equal(textOf(one) === textOf(two), JSON.stringify(byName(left)) === JSON.stringify(byName(right)))
        assert.equal(textOf(new URLSearchParams(byName(left)).toString()), textOf(one))
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

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { canonicalJson } from '../../ledger/core/canonical.ts'
import { fingerprintOf, fingerprintPrefix } from '../../ledger/core/digest.ts'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { BodyInput } from './body.ts'
import { readMeaning } from './body.ts'
import { mutations } from './test-mutate.ts'

type More = Partial<BodyInput>

const read = (contentType: string | null, body: string | Uint8Array, more: More = {}) =>
  readMeaning({ contentType, body: typeof body === 'string' ? Buffer.from(body) : body, shape: 1, ...more })
const print = (contentType: string | null, body: string | Uint8Array, more: More = {}): string =>
  fingerprintOf(read(contentType, body, more).meaning, more.shape ?? 1)

function distinct(prints: readonly string[]): void {
  assert.equal(new Set(prints).size, prints.length)
}

suite('body', () => {
  test('the form is stored with records and must never change under one version', () => {
    assert.deepEqual(
      [
        print(null, ''),
        print('application/json', '{"b":1,"a":"x"}'),
        print('application/x-www-form-urlencoded', 'a=1&b=%20'),
        print(
          'multipart/form-data; boundary=B',
          '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--B--\r\n',
        ),
        print('text/plain', 'x'),
      ],
      [
        'v1:1:tNva_w0XD2C7Zffocr9rFc4XHXWOUyE4dGwubVb_mUA',
        'v1:1:2jDjehynifl8SYOzJ8ePOEMKC4F-HyCkROjW54b01zM',
        'v1:1:ZcFJ9hOaamr3XpLBh2gUBkn157K4g92S25LSS0dtpGg',
        'v1:1:QPl1rIM3FA8cUWd4hXLpe_PCLL2c2NdXWEYx1B-gHHo',
        'v1:1:M7oXIEmnPhUwc1Kaf1FHqux-UcfoTn7bcF0Xq0CCbs0',
      ],
    )
  })

  test('JSON counts by its value and its type', () => {
    const type = 'application/json'
    assert.equal(
      print(type, '{"a":1,"b":[1.0]}'),
      print('Application/Json; charset=UTF-8', ' { "b" : [1e0], "a" : 1 }\n'),
    )
    assert.notEqual(print(type, '{"id":9007199254740993}'), print(type, '{"id":9007199254740992}'))
    const types = [
      type,
      'application/vnd.api+json',
      'application/merge-patch+json',
      'text/json',
      'application/ld+json; profile="x"',
    ]
    for (const each of types) assert.equal(print(each, '{"a":1}'), print(each, '{ "a": 1 }'))
    distinct([...types, 'application/json; v=2', 'text/plain', null].map((each) => print(each, '{"a":1}')))
    assert.equal(read(type, '{}').json, undefined)
  })

  test('the shape is in the fingerprint', () => {
    assert.equal(fingerprintPrefix(print('text/plain', 'x', { shape: 7 })), 'v1:7:')
    distinct([1, 2].map((shape) => print('application/json', '{}', { shape }).slice(5)))
  })

  test('invalid JSON is refused with the reason and the place', () => {
    for (const [body, reason, offset] of [
      ['{"a":', 'syntax', 5],
      ['{"a":1,"a":2}', 'duplicate_member', 0],
      ['"\\ud800"', 'lone_surrogate', 1],
      ['\ufeff{}', 'byte_order_mark', 0],
      ['['.repeat(1_000), 'too_deep', 512],
      [' ', 'syntax', 1],
    ] as const) {
      for (const more of [{}, { parse: true }, { choose: () => null }]) {
        assert.throws(
          () => print('application/json', body, more),
          (error) => {
            assert.ok(isOnceError(error, 'bad_input'))
            assert.deepEqual({ ...error.details }, { reason, offset })
            return true
          },
        )
      }
    }
  })

  test('an empty body is never malformed, and its type still counts', () => {
    assert.equal(print(null, ''), print('  ', ''))
    distinct([
      print(null, ''),
      print('application/json', ''),
      print('multipart/form-data', ''),
      print(null, ' '),
      print('text/plain', ''),
    ])
    assert.equal(print('application/json', '', { choose: () => assert.fail() }), print('application/json', ''))
  })

  test('forms by their pairs, multipart by its parts, anything else by its bytes', () => {
    const form = 'application/x-www-form-urlencoded'
    assert.equal(print(form, 'a=b+c'), print(`${form};charset=utf-8`, 'a=b%20c'))
    const parts = (boundary: string) =>
      `--${boundary}\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--${boundary}--`
    assert.equal(
      print('multipart/form-data; boundary=one', parts('one')),
      print('Multipart/Form-Data; boundary="two"', parts('two')),
    )
    assert.equal(
      print('multipart/related; type=x; boundary=1', parts('1')),
      print('multipart/related; boundary=2; type=x', parts('2')),
    )
    distinct(
      ['multipart/form-data', 'multipart/related', 'multipart/mixed'].map((type) =>
        print(`${type}; boundary=x`, parts('x')),
      ),
    )
    assert.notEqual(print('text/plain', 'a=b+c'), print('text/plain', 'a=b%20c'))
    assert.notEqual(print(null, Buffer.from([0xff])), print(null, Buffer.from([0xfe])))
    assert.throws(() => print('multipart/form-data', parts('x')), { code: 'bad_input' })
    assert.throws(() => print('multipart/form-data; boundary=y', parts('x')), { code: 'bad_input' })
    assert.throws(() => print(form, '%'), { code: 'bad_input' })
    // Lenient servers read these; a retry sends the same bytes.
    assert.notEqual(print('multipart/mixed; boundary=y', parts('x')), print('multipart/mixed; boundary=y', parts('y')))
    assert.equal(print('multipart/mixed', 'x'), print('multipart/mixed', 'x'))
  })

  test('readings never meet, whatever the body', () => {
    const types = [
      'application/json',
      'application/x-www-form-urlencoded',
      'text/plain',
      'nonsense',
      '16:application/json',
      null,
    ]
    distinct(types.map((type) => print(type, '1')))
    assert.throws(() => print('\ud800', '1'), { code: 'bad_input' })
    assert.throws(() => print(null, '1', { contentEncoding: '\ud800' }), { code: 'bad_input' })
  })

  test('what is compressed, or in a foreign charset, counts by its bytes', () => {
    const zipped = gzipSync('{"a":1}')
    const type = 'application/json'
    assert.equal(print(type, zipped, { contentEncoding: 'gzip' }), print(type, zipped, { contentEncoding: ' GZIP' }))
    distinct([print(type, zipped, { contentEncoding: 'gzip' }), print(type, zipped, { contentEncoding: 'br' })])
    assert.equal(
      print(type, '{"a":1}', { contentEncoding: 'identity' }),
      print(type, '{ "a":1}', { contentEncoding: null }),
    )
    const latin = Buffer.from('{"a":"é"}', 'latin1')
    assert.throws(() => print(type, latin), { code: 'bad_input' })
    distinct([print(`${type};charset=latin1`, latin), print(`${type};charset=utf-16`, latin)])
    assert.equal(print(`${type};charset=us-ascii`, '{"a":1}'), print(`${type};charset=us-ascii`, '{"a": 1}'))
  })
})

suite('chosen fields', () => {
  const type = 'application/json'
  const choose = (json: unknown) => {
    const { order, cents } = json as { order: unknown; cents: unknown }
    return { order, cents }
  }

  test('the rest does not count', () => {
    const one = read(type, '{"order":"A","cents":100,"sentAt":1}', { choose })
    assert.equal(print(type, '{"sentAt":2,"cents":1e2,"order":"A"}', { choose }), fingerprintOf(one.meaning, 1))
    assert.notEqual(print(type, '{"order":"A","cents":101}', { choose }), fingerprintOf(one.meaning, 1))
    assert.deepEqual(one.json, { order: 'A', cents: 100, sentAt: 1 })
  })

  test('everything chosen is nothing chosen', () => {
    const body = '{"b":[1.50,null,"\\u00e9"],"a":{"__proto__":1},"n":9007199254740993}'
    assert.equal(print(type, body, { choose: (json) => json }), print(type, body))
    assert.equal(print(type, body, { parse: true }), print(type, body))
    assert.deepEqual(read(type, '{"k":"v"}', { parse: true }).json, { k: 'v' })
  })

  test('numbers keep their digits, or are refused where they are chosen', () => {
    assert.deepEqual(
      read(type, '{"id":9007199254740993,"big":-123456789012345678900,"ok":1e-7}', { parse: true }).json,
      {
        id: 9007199254740993n,
        big: -123456789012345678900n,
        ok: 1e-7,
      },
    )
    const id = (json: unknown) => (json as { id: unknown }).id
    assert.notEqual(
      print(type, '{"id":9007199254740993}', { choose: id }),
      print(type, '{"id":9007199254740992}', { choose: id }),
    )
    for (const number of ['0.30000000000000000001', '1e400', '5e-400', `1${'2'.repeat(100)}`, `1e${'9'.repeat(15)}`]) {
      const body = `{"id":${number},"x":1}`
      for (const use of [id, (json: unknown) => Number(id(json)), (json: unknown) => `${id(json)}`]) {
        assert.throws(
          () => print(type, body, { choose: use }),
          (error) => {
            return isOnceError(error, 'bad_input') && error.details.reason === 'inexact_number'
          },
        )
      }
      assert.ok(print(type, body, { choose: (json) => (json as { x: number }).x }))
      assert.ok(print(type, body))
    }
  })

  test('a function that fails or chooses nothing refuses the body', () => {
    const failing = [
      () => {
        throw new TypeError('secret')
      },
      (json: unknown) => (json as { a: { b: unknown } }).a.b,
      () => undefined,
      () => Symbol('x'),
      () => Promise.resolve(1),
      () => ({
        toJSON() {
          throw new Error('no')
        },
      }),
      () => '\ud800',
    ]
    for (const each of failing) {
      assert.throws(
        () => print(type, '{}', { choose: each }),
        (error) => {
          return isOnceError(error, 'bad_input') && !error.message.includes('secret')
        },
      )
    }
  })

  test('any other body counts whole', () => {
    const never = { choose: () => assert.fail() }
    assert.equal(print('text/plain', '{}', never), print('text/plain', '{}'))
    assert.equal(
      print('application/x-www-form-urlencoded', 'a=1', never),
      print('application/x-www-form-urlencoded', 'a=1'),
    )
  })

  test('property: chosen numbers are equal exactly when they are', () => {
    const number = fc
      .tuple(fc.stringMatching(/^-?[1-9][0-9]{0,24}$/), fc.constantFrom('', '.0', 'e0', '.5', 'e3', 'e-3'))
      .map((parts) => parts.join(''))
    const spell = (text: string): string => {
      try {
        return print(type, `[${text}]`, { choose: (json) => (json as unknown[])[0] })
      } catch (error) {
        assert.ok(isOnceError(error, 'bad_input'))
        return 'refused'
      }
    }
    fc.assert(
      fc.property(number, number, (left, right) => {
        const prints = [spell(left), spell(right)]
        if (!prints.includes('refused'))
          assert.equal(prints[0] === prints[1], canonicalJson(left) === canonicalJson(right))
      }),
      { numRuns: 1_000 },
    )
  })
})

test('fuzz: 20 000 bodies under every type are read or refused', () => {
  const types = [
    'application/json',
    'a/b+json;charset=x',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=B',
    'multipart/mixed;boundary="B"',
    null,
  ]
  const seeds = [
    '{"a":[1.5e3,"\\u00e9",{"b":null}],"id":9007199254740993}',
    'a=1&b=%20+x',
    '--B\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--B--\r\n',
  ]
  const headers = mutations(
    types.map((type) => type ?? ''),
    20_000,
    6,
  )
  let index = 0
  for (const body of mutations(seeds, 20_000, 5)) {
    const mutated = headers.next().value as Buffer
    const contentType =
      index % 2 === 0 ? (types[(index / 2) % types.length] as string | null) : mutated.toString('latin1')
    const choose = index % 3 === 0 ? (json: unknown) => json : undefined
    index++
    try {
      const fingerprint = fingerprintOf(readMeaning({ contentType, body, shape: 1, choose }).meaning, 1)
      assert.match(fingerprint, /^v1:1:[\w-]{43}$/)
      assert.equal(print(contentType, body), fingerprint)
    } catch (error) {
      assert.ok(isOnceError(error, 'bad_input'), String(error))
      assert.ok('offset' in error.details || 'field' in error.details)
    }
  }
})

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { CanonicalError, type CanonicalReason, canonicalJson, canonicalValue, MAX_JSON_DEPTH } from './canonical.ts'
import { canonicalNumber } from './canonical-number.ts'

function refused(json: string | Uint8Array, reason: CanonicalReason, offset?: number): void {
  assert.throws(
    () => canonicalJson(json),
    (error) => {
      assert(error instanceof CanonicalError)
      assert.equal(error.code, 'bad_input')
      assert.equal(error.reason, reason)
      assert.equal(error.path, null)
      if (offset !== undefined) assert.equal(error.offset, offset)
      return true
    },
  )
}

suite('canonical JSON, RFC 8785', () => {
  // Appendix B: the bits of a double and its text.
  const doubles: readonly (readonly [bits: bigint, text: string])[] = [
    [0x0000000000000000n, '0'],
    [0x8000000000000000n, '0'],
    [0x0000000000000001n, '5e-324'],
    [0x8000000000000001n, '-5e-324'],
    [0x7fefffffffffffffn, '1.7976931348623157e+308'],
    [0xffefffffffffffffn, '-1.7976931348623157e+308'],
    [0x4340000000000000n, '9007199254740992'],
    [0xc340000000000000n, '-9007199254740992'],
    [0x4430000000000000n, '295147905179352830000'],
    [0x44b52d02c7e14af5n, '9.999999999999997e+22'],
    [0x44b52d02c7e14af6n, '1e+23'],
    [0x44b52d02c7e14af7n, '1.0000000000000001e+23'],
    [0x444b1ae4d6e2ef4en, '999999999999999700000'],
    [0x444b1ae4d6e2ef4fn, '999999999999999900000'],
    [0x444b1ae4d6e2ef50n, '1e+21'],
    [0x3eb0c6f7a0b5ed8cn, '9.999999999999997e-7'],
    [0x3eb0c6f7a0b5ed8dn, '0.000001'],
    [0x41b3de4355555553n, '333333333.3333332'],
    [0x41b3de4355555554n, '333333333.33333325'],
    [0x41b3de4355555555n, '333333333.3333333'],
    [0x41b3de4355555556n, '333333333.3333334'],
    [0x41b3de4355555557n, '333333333.33333343'],
    [0xbecbf647612f3696n, '-0.0000033333333333333333'],
    [0x43143ff3c1cb0959n, '1424953923781206.2'],
  ]

  test('numbers', () => {
    const view = new DataView(new ArrayBuffer(8))
    for (const [bits, text] of doubles) {
      view.setBigUint64(0, bits)
      assert.equal(canonicalValue(view.getFloat64(0)), text)
      assert.equal(canonicalJson(text), text)
      assert.equal(canonicalNumber(text), text)
    }
  })

  test('member order is that of UTF-16 code units', () => {
    const names = ['\r', '1', '\u0080', 'ö', '€', '😀', '\ufb33']
    const shuffled = ['€', '\r', '\ufb33', '1', '😀', '\u0080', 'ö']
    const expected = `{${names.map((name) => `${JSON.stringify(name)}:0`).join(',')}}`
    assert.equal(canonicalJson(`{${shuffled.map((name) => `${JSON.stringify(name)}:0`).join(',')}}`), expected)
    assert.equal(
      canonicalJson(String.raw`{"\u20ac":0,"\r":0,"\ufb33":0,"1":0,"\ud83d\ude00":0,"\u0080":0,"\u00f6":0}`),
      expected,
    )
    assert.equal(canonicalValue(Object.fromEntries(shuffled.map((name) => [name, 0]))), expected)
  })

  test('names are compared unescaped', () => {
    const names = [
      '',
      '\0',
      '\b',
      '\t',
      '\n',
      '\u000b',
      '\f',
      '\r',
      '\u000e',
      '\u001f',
      ' ',
      '!',
      '"',
      '#',
      'A',
      '[',
      '\\',
      ']',
      'a',
      'aa',
    ]
    const both = names.flatMap((name) => [name, `x${name}`, `\n${name}`, `\u0001${name}`])
    const expected = canonicalValue(Object.fromEntries(both.map((name) => [name, 0])))
    for (const order of [both, both.toReversed(), both.toSorted()]) {
      const text = `{${[...new Set(order)].map((name) => `${JSON.stringify(name)}:0`).join(',')}}`
      assert.equal(canonicalJson(text), expected)
    }
  })

  test('the sample of section 3.2.2, except for a number that is not what a double says', () => {
    const text = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`
    const canonical = String.raw`{"literals":[null,true,false],"numbers":[33333333333333329e-8,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`
    assert.equal(canonicalJson(text), canonical)
  })
})

suite('canonical JSON, numbers', () => {
  test('spellings of one decimal are equal', () => {
    const spellings: Readonly<Record<string, readonly string[]>> = {
      '0': ['0', '-0', '0.0', '-0.00', '0e0', '-0E+5', '0.000e-7', '0e99999999999999999999999999'],
      '1': ['1', '1.0', '1e0', '10e-1', '0.1e1', '1E+00', '0.00001e5', '1.000000000000000000000'],
      '-1.5': ['-1.5', '-1.50', '-15e-1', '-0.15E1'],
      '100': ['100', '1e2', '100.000', '1E+2', '10.0e1'],
      '0.05': ['0.05', '0.050', '5e-2', '0.5e-1'],
      '0.000001': ['0.000001', '1e-6', '0.0000010'],
      '1e-7': ['0.0000001', '1e-7', '1E-07', '0.00000010'],
      '100000000000000000000': ['1e20', '100000000000000000000', '0.1e21'],
      '1e+21': ['1e21', '1000000000000000000000', '1e+21', '1e000000000000000000000000021'],
      '9007199254740993e0': ['9007199254740993', '9007199254740993.0', '9007199254740.993e3'],
      '1234567890123456789e1': ['12345678901234567890', '1.2345678901234567890e19'],
      '1e400': ['1e400', '10e399', `1${'0'.repeat(400)}`],
      '1e999999999': ['1e999999999', '0.1e1000000000'],
      '-1e-400': ['-1e-400', `-0.${'0'.repeat(399)}1`],
      '1e999999999999999': ['1e999999999999999', '1e0000999999999999999'],
    }
    for (const [canonical, texts] of Object.entries(spellings)) {
      for (const text of texts) assert.equal(canonicalJson(text), canonical, text)
      assert.equal(canonicalJson(canonical), canonical)
    }
  })

  test('different decimals are different, also where doubles are not', () => {
    assert.notEqual(canonicalJson('9007199254740993'), canonicalJson('9007199254740992'))
    assert.notEqual(canonicalJson('0.1'), canonicalJson('0.1000000000000000055511151231257827021181583404541015625'))
    assert.notEqual(canonicalJson('1e400'), canonicalJson('1e401'))
    assert.notEqual(canonicalJson('1e-400'), canonicalJson('0'))
  })

  test('an exponent that no sum can hold is refused', () => {
    refused('[1e1000000000000000]', 'number_out_of_range', 1)
    refused('-1E-99999999999999999999', 'number_out_of_range', 0)
  })

  test('long numbers take linear time, and growing ones find room', () => {
    const million = 1_000_000
    assert.equal(canonicalJson('7'.repeat(million)), `${'7'.repeat(million)}e0`)
    assert.equal(canonicalJson(`1${'0'.repeat(million)}`), `1e${million}`)
    assert.equal(canonicalJson(`0.${'0'.repeat(million)}1`), `1e-${million + 1}`)
    assert.equal(canonicalJson(`1e${'0'.repeat(million)}1`), '10')
    refused(`1e${'9'.repeat(million)}`, 'number_out_of_range')
    const items = Array.from({ length: 100_000 }, () => '1e20')
    assert.equal(canonicalJson(`[${items.join()}]`), `[${items.map(() => '100000000000000000000').join()}]`)
    assert.equal(
      canonicalJson(`{"b":[${items.join()}],"a":1E2}`),
      `{"a":100,"b":[${items.map(() => '100000000000000000000').join()}]}`,
    )
  })

  test('not a number', () => {
    for (const text of [
      '01',
      '-',
      '+1',
      '.5',
      '1.',
      '1.e1',
      '1e',
      '1e+',
      '--1',
      '0x1',
      'NaN',
      'Infinity',
      '-Infinity',
      '1_0',
      '00',
    ]) {
      refused(text, 'syntax')
    }
  })
})

suite('canonical JSON, refusals', () => {
  test('duplicate names, however they are spelled', () => {
    refused('{"a":1,"a":1}', 'duplicate_member', 0)
    refused('[{"a":1,"b":2,"a":3}]', 'duplicate_member', 1)
    refused(String.raw`{"b":0,"a":1,"\u0061":2}`, 'duplicate_member')
    refused(String.raw`{"\/":1,"/":2}`, 'duplicate_member')
    refused(String.raw`{"😀":1,"\ud83d\uDE00":2}`, 'duplicate_member')
    refused(String.raw`{"\n":1,"\u000a":2}`, 'duplicate_member')
    const many = Array.from({ length: 100 }, (_, index) => `"${(index * 37) % 100}":0`)
    assert.equal(canonicalJson(`{${many.join()}}`).length, `{${many.join()}}`.length)
    refused(`{${many.join()},"50":1}`, 'duplicate_member')
    assert.equal(canonicalJson('{"a":{"a":1},"b":{"a":1}}'), '{"a":{"a":1},"b":{"a":1}}')
  })

  test('lone surrogates, raw or escaped', () => {
    refused('"\ud800"', 'lone_surrogate', 1)
    refused('["é\udc00"]', 'lone_surrogate', 4)
    for (const text of [
      '"\\ud800"',
      '"\\udc00"',
      '"\\udc00\\udc00"',
      '"\\ud800\\ud800"',
      '"\\udc00\\ud800"',
      '"\\ud800x"',
      '"\\ud800\\n"',
      '{"\\ud800":1}',
    ]) {
      refused(text, 'lone_surrogate')
    }
    assert.equal(canonicalJson(String.raw`"\ud83d\ude00"`), '"😀"')
    assert.equal(canonicalJson(String.raw`"\ud800\udc00\uDBFF\uDFFF"`), '"\u{10000}\u{10ffff}"')
    for (const low of ['\\udbff', '\\ue000', '\\udbfe']) refused(`"\\ud800${low}"`, 'lone_surrogate', 1)
  })

  test('every escaped code unit', () => {
    for (let unit = 0; unit <= 0xffff; unit++) {
      const escaped = `"\\u${unit.toString(16).padStart(4, '0')}"`
      if (unit >= 0xd800 && unit <= 0xdfff) refused(escaped, 'lone_surrogate')
      else assert.equal(canonicalJson(escaped), JSON.stringify(String.fromCharCode(unit)))
    }
  })

  test('bytes that are not UTF-8', () => {
    const sequences = [
      [0x80],
      [0xbf],
      [0xc0, 0x80],
      [0xc1, 0xbf],
      [0xc3],
      [0xc3, 0x28],
      [0xe0, 0x9f, 0xbf],
      [0xe2, 0x82],
      [0xed, 0xa0, 0x80],
      [0xed, 0xbf, 0xbf],
      [0xf0, 0x8f, 0xbf, 0xbf],
      [0xf0, 0x9f, 0x98],
      [0xf4, 0x90, 0x80, 0x80],
      [0xf5, 0x80, 0x80, 0x80],
      [0xff],
    ]
    for (const bytes of sequences) refused(Uint8Array.of(0x22, ...bytes, 0x22), 'invalid_utf8', 1)
    // What an earlier call left in the buffer must not complete a sequence that the input cuts off.
    canonicalJson('"€€€€"')
    for (const bytes of sequences) refused(Uint8Array.of(0x22, ...bytes), 'invalid_utf8', 1)
  })

  test('byte order marks, but not inside a string', () => {
    refused('\ufeff{}', 'byte_order_mark', 0)
    refused(Uint8Array.of(0xef, 0xbb, 0xbf, 0x31), 'byte_order_mark', 0)
    assert.equal(canonicalJson('"\ufeff"'), '"\ufeff"')
  })

  test('control characters in strings', () => {
    for (let code = 0; code < 0x20; code++) refused(`"a${String.fromCharCode(code)}"`, 'control_character', 2)
    assert.equal(canonicalJson('"\u007f"'), '"\u007f"')
  })

  test('what is not JSON', () => {
    const texts = [
      '',
      ' ',
      '{',
      '[',
      '"',
      '"\\',
      '"\\u',
      '"\\u12',
      '{"a"',
      '{"a":',
      '{"a":1',
      '{"a":1,',
      '[1',
      '[1,',
      'tru',
      'nul',
    ]
    const wrong = [
      '{}x',
      '1 2',
      '[]]',
      '[1,]',
      '{"a":1,}',
      '{,}',
      '[,]',
      "'a'",
      '{a:1}',
      '"\\x"',
      '"\\u00g0"',
      '//',
      '\u00a01',
      '\0',
      '1\0',
      'True',
    ]
    for (const text of [...texts, ...wrong]) refused(text, 'syntax')
    refused('[1, x]', 'syntax', 4)
  })

  test('depth beyond the bound, without overflowing the stack', () => {
    const nested = (depth: number, open: string, close: string): string => open.repeat(depth) + close.repeat(depth)
    const deepest = nested(MAX_JSON_DEPTH, '[', ']')
    assert.equal(canonicalJson(deepest), deepest)
    refused(nested(MAX_JSON_DEPTH + 1, '[', ']'), 'too_deep', MAX_JSON_DEPTH)
    refused('['.repeat(1_000_000), 'too_deep')
    refused('{"a":'.repeat(1_000_000), 'too_deep')
  })

  test('messages name the place and quote nothing', () => {
    assert.throws(() => canonicalJson('{"password":"hunter2",}'), { message: 'This is not JSON (byte 22).' })
  })
})

suite('canonical JSON, structure', () => {
  test('members move with everything inside them', () => {
    const text = '{"z":[{"b":1,"a":{"y":[],"x":{}}},7],"m":{"a":1,"b":{"d":1,"c":2}},"a":"tail"}'
    const canonical = '{"a":"tail","m":{"a":1,"b":{"c":2,"d":1}},"z":[{"a":{"x":{},"y":[]},"b":1},7]}'
    assert.equal(canonicalJson(text), canonical)
    assert.equal(canonicalJson(JSON.stringify(JSON.parse(text), null, '\t')), canonical)
  })

  test('a large value moves through every level of nesting', () => {
    const load = `"${'x'.repeat(1_000_000)}"`
    const inside = '{"b":0,"a":'.repeat(MAX_JSON_DEPTH)
    const canonical = canonicalJson(`${inside}${load}${'}'.repeat(MAX_JSON_DEPTH)}`)
    assert.equal(canonical, `${'{"a":'.repeat(MAX_JSON_DEPTH)}${load}${',"b":0}'.repeat(MAX_JSON_DEPTH)}`)
  })

  test('text, bytes and parts of larger buffers are the same', () => {
    const text = '{"ö":"€","a":["😀",1.0]}'
    const bytes = new TextEncoder().encode(`xx${text}yy`).subarray(2, -2)
    assert.equal(canonicalJson(bytes), canonicalJson(text))
    assert.equal(canonicalJson(Buffer.from(text)), canonicalJson(text))
  })

  test('large input leaves nothing behind', () => {
    const large = `[${Array.from({ length: 50_000 }, (_, index) => `{"b":${index},"a":"é"}`).join()}]`
    const canonical = canonicalJson(large)
    assert.equal(canonicalJson('{"b":1,"a":2}'), '{"a":2,"b":1}')
    assert.equal(canonicalJson(canonical), canonical)
    assert.equal(canonical, canonicalValue(JSON.parse(large)))
    assert.throws(() => canonicalJson(`${large}x`), CanonicalError)
    assert.equal(canonicalJson('[]'), '[]')
  })
})

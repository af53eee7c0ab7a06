import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { keyFromBody, parseKey, webhookIdHeaders } from './key.ts'
import { mutations } from './test-mutate.ts'

const uuid = '8e03978e-40d5-43e8-bc93-6894a57f9324'

function refused(values: readonly string[], detail: RegExp): void {
  const found = parseKey(values)
  assert.ok('problem' in found && found.problem === 'invalid', JSON.stringify(values))
  assert.match(found.detail, detail)
}

suite('key header', () => {
  test('no header is a missing key', () => {
    assert.deepEqual(parseKey([]), { problem: 'missing' })
  })

  test('quoted and bare are equal, parameters and white space aside', () => {
    const spellings = [
      uuid,
      `"${uuid}"`,
      ` \t${uuid}\t `,
      `"${uuid}" `,
      `"${uuid}";v=1`,
      `"${uuid}";a; b="x,\\"y";c=?0`,
    ]
    for (const value of spellings) assert.deepEqual(parseKey([value]), { key: uuid }, value)
    assert.deepEqual(parseKey(['a"b\\c']), parseKey(['"a\\"b\\\\c"']))
  })

  test('whatever SDKs send bare is the key as it is', () => {
    const bare = ['KG5LxwFBepaKHyUD', '1', 'dGVzdA+/Zm9v==', ':cHJldGVuZA==:', 'a;b=c', 'order:42/7', '?1', '@0', '(x)']
    for (const key of [...bare, "stripe-node-retry-'1'", '{"a":1}', 'x"y"', '-', '\\', '~!']) {
      assert.deepEqual(parseKey([key]), { key })
    }
  })

  test('inside of quotes a comma, a semicolon and an equals sign are text', () => {
    assert.deepEqual(parseKey(['"a,b;c=d"']), { key: 'a,b;c=d' })
  })

  test('every kind of parameter is ignored', () => {
    const values = [
      '1',
      '-12',
      '4.5',
      '-999999999999.999',
      '"q\\\\"',
      'tok:/*',
      '*',
      ':aGk=:',
      '::',
      '?1',
      '@-1659578233',
    ]
    for (const value of [...values, '%"f%c3%bc"', '%""']) {
      assert.deepEqual(parseKey([`"k";p=${value};*q.-_0`]), { key: 'k' }, value)
    }
  })

  test('a parameter that is malformed makes the header malformed', () => {
    const parameters = [';', ';;a', '; ', ';A=1', ';1=a', ';a=', ';a =1', ';a= 1', ' ;a', 'x', '"', ';a="', ';a="\\x"']
    for (const text of [
      ...parameters,
      ';a=1.',
      ';a=1.2345',
      ';a=1234567890123456',
      ';a=?2',
      ';a=:é:',
      ';a=:x',
      ';a=%"%C3"',
    ])
      refused([`"k"${text}`], /offset \d+|no closing/)
  })

  test('one header only', () => {
    refused(['a', 'a'], /duplicate header/)
    refused(['', ''], /duplicate header/)
  })

  test('a comma outside of quotes is two keys', () => {
    refused(['a, b'], /comma outside of quotes at offset 1/)
    refused(['a"b,c"'], /comma outside of quotes at offset 3/)
    refused(['"a", "b"'], /comma outside of quotes at offset 3/)
    refused(['"a" ,"b"'], /comma outside of quotes at offset 3/)
    refused([','], /comma/)
  })

  test('details name what is wrong and where', () => {
    for (const empty of ['', '   ', '""', '"";a=1']) refused([empty], /is empty/)
    refused(['a b'], /a space at offset 1/)
    refused(['"a b"'], /a space at offset 2/)
    refused(['a\tb'], /a control character at offset 1/)
    refused(['a\0'], /a control character at offset 1/)
    refused(['"a\x7f"'], /a control character at offset 2/)
    refused(['clé'], /outside of ASCII at offset 2/)
    refused(['"cl\u{1f511}"'], /outside of ASCII at offset 3/)
    refused(['\u00a0a'], /outside of ASCII at offset 0/)
    refused(['"'], /no closing quote/)
    refused(['"abc'], /no closing quote/)
    refused(['"abc\\"'], /no closing quote/)
    refused(['"a\\bc"'], /backslash at offset 2 escapes nothing/)
    refused(['"a\\'], /escapes nothing/)
  })

  test('255 bytes fit, one more does not, in either form', () => {
    const most = 'k'.repeat(255)
    for (const value of [most, `"${most}"`, `"${'k'.repeat(254)}\\""`]) assert.ok('key' in parseKey([value]))
    refused([`${most}k`], /longer than 255 bytes/)
    refused([`"${most}k"`], /longer than 255 bytes/)
    refused([`"k"${';a'.repeat(4_000)}`], /longer than 4096 characters/)
  })

  const visible = fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)) })
  const keys = visible.filter((text) => text !== '' && text.length <= 255)
  const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`

  test('property: every text has one quoted form, and it parses back to it', () => {
    fc.assert(fc.property(keys, (key) => assert.deepEqual(parseKey([quoted(key)]), { key })))
  })

  test('property: a text that needs no quotes is the same key without them', () => {
    const bare = keys.filter((key) => !key.startsWith('"') && !key.includes(','))
    fc.assert(fc.property(bare, (key) => assert.deepEqual(parseKey([key]), parseKey([quoted(key)]))))
  })

  test('property: well-formed parameters never change the key', () => {
    const name = fc.stringMatching(/^[a-z*][a-z0-9_.*-]{0,5}$/)
    const value = fc.oneof(
      fc.constant(''),
      fc.integer().map((number) => `=${number}`),
      visible.map((text) => `=${quoted(text)}`),
      fc.stringMatching(/^=[A-Za-z*][A-Za-z0-9:/!]{0,5}$/),
      fc.uint8Array().map((bytes) => `=:${Buffer.from(bytes).toString('base64')}:`),
      fc.boolean().map((flag) => (flag ? '=?1' : '=?0')),
    )
    const parameters = fc.array(fc.tuple(fc.constantFrom(';', '; ', ';  '), name, value), { maxLength: 5 })
    fc.assert(
      fc.property(keys, parameters, (key, list) => {
        assert.deepEqual(parseKey([quoted(key) + list.map((each) => each.join('')).join('')]), { key })
      }),
    )
  })

  test('fuzz: 20 000 headers give a key within the limits or a detail', () => {
    const seeds = [
      uuid,
      `"${uuid}"`,
      '"a\\"b\\\\";p=1;q="x";r=:aGk=:;s=%"%c3";t=@1',
      'dGVzdA==',
      'a, b',
      `"${'k'.repeat(255)}"`,
    ]
    let valid = 0
    for (const bytes of mutations(seeds, 20_000, 1)) {
      const found = parseKey([bytes.toString('latin1')])
      if ('key' in found) {
        valid++
        assert.match(found.key, /^[!-~]{1,255}$/)
        assert.deepEqual(parseKey([quoted(found.key)]), found)
      } else assert.ok(found.problem === 'invalid' && found.detail.endsWith('.'))
    }
    assert.ok(valid > 1_000 && valid < 19_000, `${valid} valid`)
  })
})

suite('key in the body', () => {
  test('a member, or one in nested objects', () => {
    assert.deepEqual(keyFromBody({ ClientToken: uuid }, 'ClientToken'), { key: uuid })
    assert.deepEqual(keyFromBody({ data: { meta: { id: 'a,b' } } }, 'data.meta.id'), { key: 'a,b' })
    assert.deepEqual(keyFromBody({ k: '"x"' }, 'k'), { key: '"x"' })
  })

  test('absent and null are missing, also where nothing could be', () => {
    for (const json of [undefined, null, 1, 'text', [], ['k'], {}, { k: null }, { K: 'a' }]) {
      assert.deepEqual(keyFromBody(json, 'k'), { problem: 'missing' })
    }
    assert.deepEqual(keyFromBody({ a: ['x'] }, 'a.0'), { problem: 'missing' })
    assert.deepEqual(keyFromBody({ a: 'x' }, 'a.length'), { problem: 'missing' })
    assert.deepEqual(keyFromBody({}, 'constructor.name'), { problem: 'missing' })
    assert.deepEqual(keyFromBody({}, '__proto__'), { problem: 'missing' })
    assert.deepEqual(keyFromBody(JSON.parse('{"__proto__":{"k":"a"}}'), 'k'), { problem: 'missing' })
  })

  test('the same limits as in a header', () => {
    for (const k of ['', ' ', 'a b', 'é', 'a\n', 'k'.repeat(256), 'x'.repeat(1_000_000), 42, true, {}, [], 7n]) {
      const found = keyFromBody({ k }, 'k')
      assert.ok('problem' in found && found.problem === 'invalid')
    }
    assert.ok('key' in keyFromBody({ k: 'k'.repeat(255) }, 'k'))
  })

  test('a field with an empty step is the mistake of the route', () => {
    for (const field of ['', '.', 'a.', '.a', 'a..b']) {
      assert.throws(() => keyFromBody({}, field), { code: 'bad_option' })
    }
  })
})

test('the ids of webhooks are keys', () => {
  assert.deepEqual(Object.values(webhookIdHeaders), ['webhook-id', 'svix-id', 'x-github-delivery'])
  const ids = [
    'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W',
    'msg_p5jXN8AQM9LWM0D4loKWxJek',
    '72d3162e-cc78-11e3-81ab-4c9367dc0958',
  ]
  for (const key of ids) assert.deepEqual(parseKey([key]), { key })
})

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import vm from 'node:vm'
import { CanonicalError, type CanonicalReason, canonicalJson, canonicalValue, MAX_JSON_DEPTH } from './canonical.ts'

function refused(value: unknown, reason: CanonicalReason, path: string): void {
  assert.throws(
    () => canonicalValue(value),
    (error) => {
      assert(error instanceof CanonicalError)
      assert.equal(error.code, 'bad_input')
      assert.equal(error.reason, reason)
      assert.equal(error.path, path)
      assert.equal(error.offset, null)
      assert(error.message.includes(path))
      return true
    },
  )
}

suite('canonical value', () => {
  test('plain data', () => {
    assert.equal(
      canonicalValue({ b: [1, 'x', null, true, false], a: {}, c: -0 }),
      '{"a":{},"b":[1,"x",null,true,false],"c":0}',
    )
    assert.equal(canonicalValue('é"\\\n\u001f/\u007f😀\ufeff'), '"é\\"\\\\\\n\\u001f/\u007f😀\ufeff"')
    assert.equal(canonicalValue('ab"'.repeat(100)), JSON.stringify('ab"'.repeat(100)))
    assert.equal(canonicalValue(Object.assign(Object.create(null) as object, { b: 1, a: 2 })), '{"a":2,"b":1}')
    assert.equal(canonicalValue(vm.runInNewContext('({ b: [1], a: 2 })')), '{"a":2,"b":[1]}')
    assert.equal(canonicalValue(JSON.parse('{"__proto__":1,"a":2}')), '{"__proto__":1,"a":2}')
  })

  test('many members', () => {
    const names = Array.from({ length: 200 }, (_, index) => `n${(index * 73) % 200}`)
    const text = canonicalValue(Object.fromEntries(names.map((name) => [name, 0])))
    assert.equal(
      text,
      `{${names
        .toSorted()
        .map((name) => `"${name}":0`)
        .join()}}`,
    )
  })

  test('members that are undefined are left out', () => {
    assert.equal(canonicalValue({ a: undefined, b: 1, c: undefined }), '{"b":1}')
    assert.equal(canonicalValue({ a: undefined, b: { toJSON: () => undefined } }), '{}')
  })

  test('bigints are exact integers, equal to the same JSON number', () => {
    for (const text of [
      '0',
      '-7',
      '9007199254740992',
      '9007199254740993',
      '100000000000000000000000',
      '123456789012345678901234567890',
    ]) {
      assert.equal(canonicalValue(BigInt(text)), canonicalJson(text))
    }
    assert.equal(canonicalValue(1n), canonicalValue(1))
    assert.equal(canonicalValue(10n ** 21n), '1e+21')
  })

  test('toJSON is asked once, with the name it is under', () => {
    assert.equal(canonicalValue({ at: new Date(0) }), '{"at":"1970-01-01T00:00:00.000Z"}')
    assert.equal(canonicalValue({ url: new URL('https://example.com/a') }), '{"url":"https://example.com/a"}')
    const names: unknown[] = []
    const spy = { toJSON: (name: unknown) => names.push(name) }
    assert.equal(canonicalValue({ a: spy, b: [spy] }), '{"a":1,"b":[2]}')
    assert.deepEqual(names, ['a', '0'])
    const twice = { toJSON: () => ({ x: 1, toJSON: () => 2 }) }
    refused(twice, 'unsupported_type', '$.toJSON')
    const nested = { toJSON: () => ({ inner: canonicalValue({ b: 1, a: 2 }) }) }
    assert.equal(canonicalValue([nested]), '[{"inner":"{\\"a\\":2,\\"b\\":1}"}]')
  })

  test('what JSON would drop or blur is refused with its path', () => {
    refused({ items: [0, 0, 0, { price: NaN }] }, 'number_out_of_range', '$.items[3].price')
    refused([Infinity], 'number_out_of_range', '$[0]')
    refused(undefined, 'unsupported_type', '$')
    refused([1, undefined], 'unsupported_type', '$[1]')
    refused(Object.assign([], { length: 2 }), 'unsupported_type', '$[0]')
    refused({ a: () => 1 }, 'unsupported_type', '$.a')
    refused({ 'a b': Symbol('s') }, 'unsupported_type', '$["a b"]')
    refused({ a: new Date(NaN) }, 'unsupported_type', '$.a')
    for (const value of [
      new Map(),
      new Set(),
      new Error('x'),
      /x/,
      new Uint8Array(1),
      Buffer.from('a'),
      new DataView(new ArrayBuffer(1)),
    ]) {
      refused({ a: value }, 'unsupported_type', '$.a')
    }
    for (const value of [
      new ArrayBuffer(1),
      Object('x'),
      Object(1n),
      Promise.resolve(),
      new (class Order {})(),
      new WeakMap(),
    ]) {
      refused([[value]], 'unsupported_type', '$[0][0]')
    }
    refused({ toJSON: () => new Map() }, 'unsupported_type', '$')
  })

  test('half a surrogate pair is refused in values and names', () => {
    refused({ a: '\ud800' }, 'lone_surrogate', '$.a')
    refused({ a: 'x'.repeat(100) + '\udc00' }, 'lone_surrogate', '$.a')
    refused({ 'a\udc00': 1 }, 'lone_surrogate', '$["a\\udc00"]')
  })

  test('cycles are refused, shared parts are not', () => {
    const loop: Record<string, unknown> = { a: {} }
    loop.a = { b: [loop] }
    refused(loop, 'cycle', '$.a.b[0]')
    const list: unknown[] = []
    list.push(list)
    refused(list, 'cycle', '$[0]')
    const shared = { x: 1 }
    assert.equal(canonicalValue({ a: shared, b: [shared, shared] }), '{"a":{"x":1},"b":[{"x":1},{"x":1}]}')
    const again = { toJSON: () => ({ again }) }
    assert.throws(() => canonicalValue(again), { reason: 'too_deep' })
  })

  test('the depth bound is that of JSON text', () => {
    const nest = (depth: number): unknown => {
      let value: unknown = []
      for (let level = 1; level < depth; level++) value = [value]
      return value
    }
    assert.equal(canonicalValue(nest(MAX_JSON_DEPTH)), '['.repeat(MAX_JSON_DEPTH) + ']'.repeat(MAX_JSON_DEPTH))
    assert.throws(() => canonicalValue(nest(MAX_JSON_DEPTH + 1)), { reason: 'too_deep' })
    assert.throws(() => canonicalValue(nest(1_000_000)), { reason: 'too_deep' })
  })

  test('a path is cut before it fills a screen', () => {
    assert.throws(
      () => canonicalValue({ ['n'.repeat(10_000)]: NaN }),
      (error) => error instanceof CanonicalError && error.message.length < 500,
    )
  })
})

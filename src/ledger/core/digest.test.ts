import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { digestParts, lengthPrefixed, sha256Base64Url, sha256Hex } from './digest.ts'

const part = fc.oneof(fc.constant(null), fc.string({ unit: 'binary' }), fc.stringMatching(/^[0-9:\-a]{0,6}$/))
const parts = fc.array(part, { maxLength: 5 })

suite('digest', () => {
  test('SHA-256 of text and bytes', () => {
    assert.equal(sha256Hex(''), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
    assert.equal(sha256Hex('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
    const bytes = new TextEncoder().encode('xé€😀x').subarray(1, -1)
    assert.equal(sha256Hex('é€😀'), sha256Hex(bytes))
    assert.equal(sha256Base64Url(bytes), createHash('sha256').update(bytes).digest('base64url'))
  })

  test('parts cannot bleed into each other', () => {
    const lists = [
      [],
      [''],
      [null],
      ['', ''],
      ['a'],
      ['a', ''],
      ['', 'a'],
      ['ab', 'c'],
      ['a', 'bc'],
      ['1:a'],
      ['-'],
      ['1', ':a'],
      [null, null],
    ]
    assert.equal(new Set(lists.map(lengthPrefixed)).size, lists.length)
    assert.equal(new Set(lists.map(digestParts)).size, lists.length)
  })

  test('the encoding can be read back, so that it is different for different parts', () => {
    fc.assert(
      fc.property(parts, (list) => assert.deepEqual(readParts(lengthPrefixed(list)), list)),
      { numRuns: 2_000 },
    )
  })

  test('no encoding is JSON', () => {
    fc.assert(fc.property(parts, (list) => assert.throws(() => JSON.parse(lengthPrefixed(list)), SyntaxError)))
  })

  test('half a surrogate pair is refused, because all of them look the same in UTF-8', () => {
    assert.throws(() => digestParts(['a', '\ud800']), { code: 'bad_input', path: '$[1]' })
  })
})

function readParts(text: string): (string | null)[] {
  const list: (string | null)[] = []
  for (let at = 0; at < text.length; ) {
    if (text.charAt(at) === '-') {
      list.push(null)
      at++
      continue
    }
    const colon = text.indexOf(':', at)
    const end = colon + 1 + Number(text.slice(at, colon))
    list.push(text.slice(colon + 1, end))
    at = end
  }
  return list
}

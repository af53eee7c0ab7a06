import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { mediaTypeText, parseDisposition, parseMediaType, withoutSpace } from './content-type.ts'

const textOf = (raw: string): string => mediaTypeText(raw, parseMediaType(raw))

suite('content type', () => {
  test('spellings of one type', () => {
    const json = [
      'application/json',
      'Application/JSON',
      ' application/json ',
      'application/json;',
      'application/json; ;',
    ]
    for (const raw of [
      ...json,
      'application/json;charset=utf-8',
      'application/json; Charset="UTF-8"',
      'application/json;charset=utf8',
    ])
      assert.equal(textOf(raw), textOf('application/json'), raw)
    assert.equal(textOf('a/b; y=2; x="1"'), textOf('a/b;x=1;Y=2'))
    assert.equal(textOf('multipart/mixed; boundary=abc'), textOf('multipart/mixed; boundary="x y"'))
  })

  test('what differs', () => {
    const all = [
      'a/b',
      'a/c',
      'a/b;x=1',
      'a/b;x=2',
      'a/b;x=A',
      'a/b;x=a',
      'a/b;charset=latin1',
      'a/b;boundary=1',
      'a/b;x="1;y=2"',
    ]
    const malformed = [
      '',
      'a',
      'a/',
      '/b',
      'a/b c',
      'a/b;x',
      'a/b;x=',
      'a/b;x=1;x=1',
      'a/b;x="1',
      'a/b, a/b',
      'a/b;x =1',
      '3:a/b',
    ]
    const texts = [...all, ...malformed].map(textOf)
    assert.equal(new Set(texts).size, texts.length)
    for (const raw of [...malformed, 'a/b\n', 'a/\0', `a/b;x=${'y'.repeat(9_000)}`])
      assert.equal(parseMediaType(raw), null)
  })

  test('parameters as they stand, quotes aside', () => {
    const found = parseDisposition('Form-Data; NAME="a;\\"b\\\\"; filename=x=y.txt')
    assert.equal(found?.value, 'form-data')
    assert.deepEqual(
      [...(found?.parameters ?? [])],
      [
        ['name', 'a;\\"b\\\\'],
        ['filename', 'x=y.txt'],
      ],
    )
    assert.deepEqual([...(parseDisposition('form-data; name=""')?.parameters ?? [])], [['name', '']])
  })

  test('only the white space of HTTP is white space', () => {
    assert.equal(withoutSpace(' \t a\u00a0 \t'), 'a\u00a0')
    assert.equal(withoutSpace(' \t '), '')
    // So many that a search which begins again at each of them would never end.
    const many = 10_000_000
    assert.equal(withoutSpace(`a${' '.repeat(many)}b`).length, many + 2)
  })
})

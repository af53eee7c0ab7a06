import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { isOnceError } from '../../ledger/core/errors.ts'
import { MAX_PART_HEADER_BYTES, MAX_PARTS, multipartText } from './multipart.ts'
import { mutations } from './test-mutate.ts'

/** `|` is a line end, so that bodies fit on a line. */
const bytesOf = (text: string): Buffer => Buffer.from(text.replaceAll('|', '\r\n'), 'latin1')
const textOf = (text: string, boundary = 'B'): string => multipartText(bytesOf(text), boundary, true)
const refused = (text: string, reason: string, boundary?: string) =>
  assert.throws(
    () => textOf(text, boundary),
    (error) => isOnceError(error, 'bad_input') && error.details.reason === reason,
    text,
  )

const plain =
  '--B|Content-Disposition: form-data; name="a"||one|--B|Content-Disposition: form-data; name="f"; filename="x.txt"|Content-Type: text/plain||two||three|--B--|'

suite('multipart', () => {
  test('boundary, preamble, epilogue, padding, and the spelling of headers do not matter', () => {
    const spellings: [string, string?][] = [
      [plain.replaceAll('--B', '------WebKitFormBoundaryx1'), '----WebKitFormBoundaryx1'],
      [`preamble --B|${plain}`],
      [`|${plain}`],
      [`${plain}epilogue|--B|`],
      [plain.slice(0, -1)],
      [plain.replaceAll('--B|', '--B \t|')],
      [plain.replaceAll('Content-Disposition: form-data', 'CONTENT-DISPOSITION:Form-Data')],
      [
        plain.replace(
          '; name="f"; filename="x.txt"|Content-Type: text/plain',
          ';filename=x.txt;NAME=f|X-Other: 1|content-type:  Text/Plain; charset=UTF-8',
        ),
      ],
      [
        plain.replace(
          'Content-Disposition: form-data; name="f"; filename="x.txt"|Content-Type: text/plain',
          'Content-Type: text/plain|Content-Disposition: form-data;| name="f";|\tfilename="x.txt"',
        ),
      ],
      [plain.replace('name="a"', 'name="a"|Content-Transfer-Encoding: 8BIT')],
    ]
    for (const [text, boundary] of spellings) assert.equal(textOf(text, boundary), textOf(plain), text)
  })

  test('names, files, types, encodings, bytes, number and order of parts do', () => {
    const [a, f] = [plain.slice(0, plain.indexOf('--B', 1)), plain.slice(plain.indexOf('--B', 1), -6)]
    const bodies = [
      plain,
      `${f}${a}--B--|`,
      `${a}--B--|`,
      `${a}${a}--B--|`,
      '--B--',
      plain.replace('name="a"', 'name="A"'),
    ]
    const changes = [
      ['one', 'One'],
      ['one', ''],
      ['one', 'one|'],
      ['one', '|one'],
      ['two||', 'two|'],
      ['text/plain', 'text/html'],
      ['x.txt', 'y.txt'],
    ]
    const more = [
      ['|Content-Type: text/plain', ''],
      ['; filename="x.txt"', ''],
      ['x.txt', ''],
      ['name="a"', 'name="a"|Content-Transfer-Encoding: base64'],
    ]
    for (const [from, to] of [...changes, ...more]) bodies.push(plain.replace(from as string, to as string))
    bodies.push(plain.replace('x.txt', 'a\\b'), plain.replace('x.txt', 'ab'), plain.replace('x.txt', 'a\\"b'))
    const texts = bodies.map((body) => textOf(body))
    assert.equal(new Set(texts).size, texts.length)
  })

  test('a part cannot pretend to be two', () => {
    const inner = plain.replaceAll('--B', '--C')
    assert.notEqual(textOf(`--B|Content-Disposition: form-data; name="a"||${inner}|--B--`), textOf(plain))
    const name = 'form-data; name="a"'
    assert.notEqual(
      textOf(`--B|Content-Disposition: ${name}||x--B|y|--B--`),
      textOf(`--B|Content-Disposition: ${name}||x|--B--`),
    )
  })

  test('bytes are bytes', () => {
    const part = (bytes: readonly number[]) =>
      Buffer.concat([bytesOf('--B|Content-Disposition: form-data; name=a||'), Buffer.from(bytes), bytesOf('|--B--')])
    const texts = [[0xff], [0xfe], [0], [], [0xef, 0xbf, 0xbd], [0x0a], [0x0d]].map((bytes) =>
      multipartText(part(bytes), 'B', true),
    )
    assert.equal(new Set(texts).size, texts.length)
  })

  test('what is malformed is refused by its kind', () => {
    const head = '--B|Content-Disposition: form-data; name=a'
    for (const boundary of ['', 'a'.repeat(71), 'a ', 'é', 'a\r\n']) refused(plain, 'boundary', boundary)
    assert.throws(() => multipartText(bytesOf(plain), undefined, true), { code: 'bad_input' })
    for (const text of ['x', '-', '-B--', 'x--B--', '\n--B--', '--C--']) refused(text, 'no_delimiter')
    for (const text of ['--Bx', '--B', '--B-', '--B\n', `${head}||x|--BB|`, `${head}||x|--B`])
      refused(text, 'delimiter')
    for (const text of [`${head}||x`, `${head}||x|--C--`, `${head}||x\n--B--`, `${head}||x\rx--B--`, '--B|'])
      refused(text, 'not_closed')
    refused('--B|--B--', 'part_headers')
    refused('--B|--B|a: x||y|--B--', 'part_headers')
    refused('--B|--B: x||y|--B--', 'part_headers')
    refused(`${head}|--B--`, 'part_headers')
    refused(`${head}||--B--`, 'part_headers')
    for (const line of ['x', ': y', 'a b: c', 'a : c', 'a:\0', 'a:\r', 'a:\n', 'content-disposition: form-data']) {
      refused(`${head}|${line}||x|--B--`, 'part_headers')
    }
    for (const value of ['', 'attachment; name=a', 'form-data; name="a', 'form-data; name=a; name=b', 'form-data, x']) {
      refused(`--B|Content-Disposition: ${value}||x|--B--`, 'part_headers')
    }
    refused('--B|Content-Type: text/plain||x|--B--', 'part_headers')
    refused('--B||x|--B--', 'part_name')
    refused('--B|Content-Disposition: form-data; filename=a||x|--B--', 'part_name')
  })

  test('parts and their headers are bounded', () => {
    const part = '--B|Content-Disposition: form-data; name=a||x|'
    assert.ok(textOf(`${part.repeat(MAX_PARTS)}--B--`).length > 0)
    refused(`${part.repeat(MAX_PARTS + 1)}--B--`, 'too_many_parts')
    const padded = (length: number) => {
      const head = 'Content-Disposition: form-data; name=a|X: '
      return `--B|${head}${'y'.repeat(length - bytesOf(head).length)}||x|--B--`
    }
    assert.ok(textOf(padded(MAX_PART_HEADER_BYTES)).length > 0)
    refused(padded(MAX_PART_HEADER_BYTES + 1), 'part_headers_too_large')
  })

  test('types other than forms keep every header, in any order', () => {
    const read = (text: string) => multipartText(bytesOf(text), 'B', false)
    const body = '--B|Content-ID: <1>|Content-Type: application/json||{}|--B||raw|--B--'
    assert.equal(read(body), read('--B|content-type: Application/JSON|CONTENT-ID:  <1>||{}|--B||raw|--B--'))
    for (const other of [body.replace('<1>', '<2>'), body.replace('raw', 'x'), body.replace('Content-ID: <1>|', '')])
      assert.notEqual(read(body), read(other))
  })

  test('property: equal if, and only if, the parts are', () => {
    const text = fc.stringMatching(/^[a-c;= .%-]{0,4}$/)
    const parts = fc.array(
      fc.record({
        name: text,
        file: fc.option(text),
        type: fc.constantFrom(null, 'a/b', 'c/d'),
        bytes: fc.uint8Array({ maxLength: 6 }),
      }),
      { maxLength: 3 },
    )
    type Part = typeof parts extends fc.Arbitrary<(infer P)[]> ? P : never
    const written = (list: readonly Part[], boundary: string, swap: boolean) => {
      const chunks = list.flatMap(({ name, file, type, bytes }) => {
        const disposition = `Content-Disposition: form-data; name="${name}"${file === null ? '' : `; filename="${file}"`}`
        const lines = [disposition, ...(type === null ? [] : [`content-type:${type}`])]
        return [`--${boundary}|${(swap ? lines.toReversed() : lines).join('|')}||`, bytes, '|'].map((chunk) =>
          typeof chunk === 'string' ? bytesOf(chunk) : Buffer.from(chunk),
        )
      })
      return multipartText(Buffer.concat([...chunks, bytesOf(`--${boundary}--`)]), boundary, true)
    }
    const identity = (list: readonly Part[]) =>
      JSON.stringify(list.map((part) => ({ ...part, bytes: [...part.bytes] })))
    fc.assert(
      fc.property(parts, parts, (left, right) => {
        assert.equal(written(left, 'xyz', false), written(left, "0'()+_,-./:=?", true))
        assert.equal(written(left, 'xyz', false) === written(right, 'xyz', false), identity(left) === identity(right))
      }),
      { numRuns: 500 },
    )
  })

  test('what the platform writes is read', async () => {
    const form = new FormData()
    form.append('field "1"', 'välue\r\n')
    form.append('file', new Blob([new Uint8Array([0, 13, 10, 45, 45, 255])], { type: 'image/png' }), 'ü".png')
    const read = async () => {
      const request = new Request('http://host/', { method: 'POST', body: form })
      const boundary = /boundary=(.*)$/.exec(request.headers.get('content-type') ?? '')?.[1]
      return { boundary, text: multipartText(await request.bytes(), boundary, true) }
    }
    const [one, two] = [await read(), await read()]
    assert.notEqual(one.boundary, two.boundary)
    assert.equal(one.text, two.text)
  })

  test('a megabyte that was made to be slow is not', () => {
    // Work that grows with the square of it would take longer than a test may.
    const size = 3_000_000
    const dashes = '-'.repeat(70)
    const head = '--B|Content-Disposition: form-data; name=a'
    const nearly = `\r\n--${'a'.repeat(69)}`
    const hostile: [string, string][] = [
      ['\r'.repeat(size), 'B'],
      ['\r\n'.repeat(size / 2), 'B'],
      ['\r\n--'.repeat(size / 4), dashes],
      ['-'.repeat(size), dashes],
      ['a'.repeat(size), 'a'.repeat(70)],
      [nearly.repeat(size / nearly.length), 'a'.repeat(70)],
      [`--B${' '.repeat(size)}`, 'B'],
      ['--B|'.repeat(size / 5), 'B'],
      ['--B||'.repeat(size / 5), 'B'],
      [`${head}||x|`.repeat(size / 45), 'B'],
      [`${head}|${'a:b|'.repeat(size / 5)}|x|--B--`, 'B'],
      [`${head}|${' a|'.repeat(size / 4)}|x|--B--`, 'B'],
      [`${head}${'; '.repeat(4_000)}||x|--B--`, 'B'],
      [`${head};filename="${'\\"'.repeat(4_000)}||x|--B--`, 'B'],
      [`${head}|a:${' '.repeat(8_000)}b||x|--B--`, 'B'],
      [`${head}||${'|--'.repeat(size / 4)}|--B--`, 'B'],
    ]
    for (const [text, boundary] of hostile) {
      const bytes = bytesOf(text)
      try {
        multipartText(bytes, boundary, true)
      } catch (error) {
        assert.ok(isOnceError(error, 'bad_input'))
      }
    }
  })

  test('fuzz: 20 000 bodies are read or refused', () => {
    const seeds = [
      plain,
      '--B||x|--B--',
      `|${plain}|--B--`,
      '--B|Content-Disposition: form-data;| name="a\\"";filename*=UTF-8\'\'x||\xff\0|--B \t|--B--',
    ]
    let valid = 0
    for (const bytes of mutations(
      seeds.map((text) => text.replaceAll('|', '\r\n')),
      20_000,
      4,
    )) {
      for (const isForm of [true, false]) {
        try {
          multipartText(bytes, 'B', isForm)
          valid++
        } catch (error) {
          assert.ok(isOnceError(error, 'bad_input'), String(error))
          const { offset } = error.details
          assert.ok(typeof offset === 'number' && offset >= 0 && offset <= bytes.length)
        }
      }
    }
    assert.ok(valid > 1_000, `${valid} valid`)
  })
})

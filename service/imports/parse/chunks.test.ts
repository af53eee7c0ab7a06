import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { type Entry, Unreadable } from './entry.ts'
import { parseReferences } from './parse.ts'
import { bytesOf, parsed, ris } from './test-files.ts'

/** Pieces of which files are made, good and bad ones, in every format. */
const pieces = [
  'TY  - JOUR',
  'TI  - Ünïted',
  'AU  - Müller',
  'ER  - ',
  'PMID- 1',
  'TI  - T',
  '      continues',
  'FAU - Å, B',
  'title,year',
  'a;b;c',
  '"q,1",2',
  '"open',
  'x"y",z',
  'Title\tAuthor',
  'sep=;',
  '',
  '\n',
  '\r\n',
  '\r',
  '"',
  '🐘',
  '\ufeff',
  '\0',
  'é',
]
const endings = fc.constantFrom('\n', '\r\n', '\r', '')
const text = fc
  .array(fc.tuple(fc.constantFrom(...pieces), endings), { maxLength: 40 })
  .map((lines) => lines.map(([line, end]) => line + end).join(''))
const file = fc
  .tuple(text, fc.constantFrom<BufferEncoding[]>('utf8', 'latin1', 'utf16le'), fc.boolean())
  .map(([content, encoding, mark]) => bytesOf(mark ? `\ufeff${content}` : content, encoding))

async function outcome(...chunks: readonly Uint8Array[]): Promise<readonly Entry[] | string> {
  try {
    return await parsed(...chunks)
  } catch (error) {
    if (error instanceof Unreadable) return error.message
    throw error
  }
}

test('wherever the chunks of a file end, it is read into the same', async () => {
  await fc.assert(
    fc.asyncProperty(file, fc.array(fc.nat()), async (bytes, at) => {
      const cuts = [0, ...at.map((n) => n % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
      const chunks = cuts.slice(1).map((end, n) => bytes.subarray(cuts[n], end))
      assert.deepEqual(await outcome(...chunks), await outcome(bytes))
    }),
    { numRuns: 500 },
  )
})

test('a file that arrives byte by byte is parsed as in one piece', async () => {
  const bytes = bytesOf(`\ufeff${ris(1)}${ris(2)}`.replaceAll('\n', '\r\n'))
  assert.deepEqual(await parsed(...Array.from(bytes, (byte) => Uint8Array.of(byte))), await parsed(bytes))
})

test('a buffer that its reader uses again changes nothing', async () => {
  const bytes = bytesOf(ris(1))
  async function* reused(): AsyncGenerator<Uint8Array> {
    const buffer = Buffer.alloc(7)
    for (let at = 0; at < bytes.length; at += 7) yield buffer.subarray(0, bytes.copy(buffer, 0, at, at + 7))
  }
  const entries: Entry[] = []
  for await (const batch of parseReferences(reused())) entries.push(...batch)
  assert.deepEqual(entries, await parsed(bytes))
})

test('whatever the bytes are, a file is read or refused, and nothing else happens', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 50 })), async (chunks) => {
      await outcome(...chunks)
    }),
    { numRuns: 300 },
  )
})

/** As much as a few batches; a hundred thousand records would be more than fifty times as much. */
const HEAP_BYTES_MOST = 8 * 1024 * 1024

test('100 000 records are read in the memory of a few', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  async function* file(): AsyncGenerator<Uint8Array> {
    const hundred = bytesOf(Array.from({ length: 100 }, (_, each) => ris(each)).join(''))
    for (let n = 0; n < 100_000; n += 100) yield hundred
  }
  let references = 0
  let batches = 0
  let most = 0
  collect()
  const before = process.memoryUsage().heapUsed
  for await (const batch of parseReferences(file())) {
    references += batch.length
    if (batches++ % 100 !== 0) continue
    collect()
    most = Math.max(most, process.memoryUsage().heapUsed - before)
  }
  assert.equal(references, 100_000)
  assert.ok(most < HEAP_BYTES_MOST, `${most} bytes of heap`)
})

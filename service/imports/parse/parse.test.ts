import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LINE_BYTES_MOST, RECORD_CHARS_MOST, Unreadable } from './entry.ts'
import { bytesOf, parsed, ris, summary } from './test-files.ts'

const fields = { type: null, authors: [], year: null, journal: null, volume: null, issue: null, pages: null } as const
const none = { ...fields, doi: null, pmid: null, url: null, abstract: null, keywords: [] } as const

test('RIS: repeated tags, values over several lines, synonyms', async () => {
  const text = `Provider: a library\n\nTY  - JOUR\nT1  - On retries\n  that continue\nA1  - Müller, Ann\nAU  - Okafor, Ben\nY1  - 2008/03//
JF  - Lost Letters\nVL  - 12\nIS  - 3\nSP  - 100\nEP  - 110\nDO  - https://doi.org/10.1000/abc.1\nUR  - https://example.com/a
N2  - First.\n\nIL -6 was high.\nKW  - retries\nKW  - networks\nZZ  - an unknown tag\nER  -`
  assert.deepEqual(await parsed(text), [
    {
      kind: 'reference',
      line: 3,
      reference: {
        type: 'JOUR',
        title: 'On retries that continue',
        authors: ['Okafor, Ben', 'Müller, Ann'],
        year: 2008,
        journal: 'Lost Letters',
        volume: '12',
        issue: '3',
        pages: '100-110',
        doi: '10.1000/abc.1',
        pmid: null,
        url: 'https://example.com/a',
        abstract: 'First. IL -6 was high.',
        keywords: ['retries', 'networks'],
      },
    },
  ])
})

test('RIS: a broken record is reported by its line, and the others are read', async () => {
  const text = `${ris(1)}TY  - JOUR
AU  - Anonymous
ER  -
TY  - BOOK
TI  - Never closed
${ris(2)}TI  - Without a beginning
ER  -
ER  -
a stray word
and another
${ris(3)}TY  - JOUR
TI  - Cut off`
  assert.deepEqual(summary(await parsed(text)), [
    'The effect of retries, part 1',
    '10: has no title',
    '13: has no end (ER) before the next record begins',
    'The effect of retries, part 2',
    '24: does not begin with TY',
    '26: ends a record (ER) that never began (TY)',
    '27: stands outside of any record',
    'The effect of retries, part 3',
    '38: has no end (ER); the file may have been cut off',
  ])
})

test('NBIB: padded tags, indented lines, names in full', async () => {
  const text = `
PMID- 31452104
OWN - NLM
TI  - Retries considered
      harmless.
FAU - Müller, Ann
AU  - Müller A
FAU - Okafor, Ben
AU  - Okafor B
CN  - The Retry Group
DP  - 2019 Aug 26
JT  - Journal of Acknowledgements
VI  - 8
IP  - 2
PG  - 1-9
LID - S0140-6736(19)1 [pii]
LID - 10.1000/xyz [doi]
AB  - One
      two.
OT  - retry
PT  - Journal Article

PMID- 2
AU  - Anonymous

TI  - Without an identifier

PMID- 3
TI  - Not indented
as it should be

PMID- 4
BTI - A book
PMID- 5
TI  - Right behind it
`
  const entries = await parsed(text)
  assert.deepEqual(entries[0], {
    kind: 'reference',
    line: 2,
    reference: {
      type: 'Journal Article',
      title: 'Retries considered harmless.',
      authors: ['Müller, Ann', 'Okafor, Ben', 'The Retry Group'],
      year: 2019,
      journal: 'Journal of Acknowledgements',
      volume: '8',
      issue: '2',
      pages: '1-9',
      doi: '10.1000/xyz',
      pmid: '31452104',
      url: null,
      abstract: 'One two.',
      keywords: ['retry'],
    },
  })
  assert.deepEqual(summary(entries.slice(1)), [
    '23: has no title',
    '26: does not begin with PMID',
    '28: line 30 is neither a tag nor indented',
    'A book',
    'Right behind it',
  ])
})

test('CSV: quotes with delimiters, quotes and line ends in them; names of columns by any of their synonyms', async () => {
  const text = `PMID,"Article Title",Authors,Colour,"Publication Year",Journal/Book,DOI
7,"Retries, ""safe"" ones\r\nexplained","Müller A, Okafor B.",red,2020,Letters,doi:10.1000/q
,Plain,"Müller, Ann; Okafor, Ben",,,,
`
  assert.deepEqual(await parsed(text), [
    {
      kind: 'reference',
      line: 2,
      reference: {
        ...none,
        title: 'Retries, "safe" ones explained',
        authors: ['Müller A', 'Okafor B'],
        year: 2020,
        journal: 'Letters',
        doi: '10.1000/q',
        pmid: '7',
      },
    },
    {
      kind: 'reference',
      line: 4,
      reference: { ...none, title: 'Plain', authors: ['Müller, Ann', 'Okafor, Ben'] },
    },
  ])
})

for (const [name, text] of [
  ['semicolons', 'Title;Year\nA, b;2001\n'],
  ['tabs', 'Title\tYear\nA, b\t2001\n'],
  ['bars', 'Title|Year\nA, b|2001\n'],
  ['an announced delimiter', 'sep=;\nTitle;Year\nA, b;2001\n'],
  ['one column only', 'title\n"A, b"\n'],
] as const) {
  test(`CSV with ${name}`, async () => assert.deepEqual(summary(await parsed(text)), ['A, b']))
}

test('CSV: a broken row is reported by its line, and the others are read', async () => {
  const text =
    'title,year\nOne,1999\nTwo\nThree,2000,\nFour,2000,more\n"Five"x,1\n,2001\n\nSix,2002\n"Seven,2003\nEight,1\n'
  assert.deepEqual(summary(await parsed(text)), [
    'One',
    '3: has 1 fields where the header has 2',
    'Three',
    '5: has 3 fields where the header has 2',
    '6: has text behind a closing quote',
    '7: has no title',
    'Six',
    '10: opens a quote that never closes',
    'Eight',
  ])
})

for (const [name, bytes] of [
  ['UTF-8', bytesOf(ris(1))],
  ['UTF-8 with a mark', bytesOf(`\ufeff${ris(1)}`)],
  ['UTF-16', bytesOf(`\ufeff${ris(1)}`, 'utf16le')],
  ['UTF-16, the other way round', bytesOf(`\ufeff${ris(1)}`, 'utf16le').swap16()],
  ['Latin-1', bytesOf(ris(1), 'latin1')],
  ['CRLF', bytesOf(ris(1).replaceAll('\n', '\r\n'))],
  ['CR', bytesOf(ris(1).replaceAll('\n', '\r'))],
] as const) {
  test(`${name} is read as what it is`, async () => {
    assert.deepEqual(await parsed(bytes), await parsed(ris(1)))
  })
}

test('a file that was put together from two encodings is read line by line', async () => {
  const [first, second] = await parsed(bytesOf(ris(1), 'latin1'), bytesOf(ris(1)))
  assert.ok(first?.kind === 'reference' && second?.kind === 'reference')
  assert.deepEqual(first.reference, second.reference)
})

for (const [name, bytes, reason] of [
  ['nothing', bytesOf(''), 'is empty'],
  ['only blank lines', bytesOf('\n \r\n'), 'is empty'],
  ['only a mark', bytesOf('\ufeff'), 'is empty'],
  ['prose', bytesOf('Dear colleague,\nhere are the references.\n'), /^is neither RIS, nor NBIB/],
  ['a very long line', Buffer.alloc(3 * LINE_BYTES_MOST, 'x'), /^is neither RIS/],
  ['a picture', Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), 'is not text'],
  ['a table without titles', bytesOf('name,price\nbread,2\n'), /^is neither RIS/],
  [
    'only broken records',
    bytesOf('TY  - JOUR\nER  -\n'),
    'holds no record that can be read; the first of 1: line 1 has no title',
  ],
] as const) {
  test(`${name}: the file is unreadable, and the reason is given`, async () => {
    await assert.rejects(parsed(bytes), (error) => {
      assert.ok(error instanceof Unreadable)
      if (typeof reason === 'string') assert.equal(error.message, reason)
      else assert.match(error.message, reason)
      return true
    })
  })
}

test('what is too long, or holds a NUL, spoils its own record only', async () => {
  const long = `TY  - JOUR\nTI  - Long line\nAB  - ${'x'.repeat(LINE_BYTES_MOST)}\nER  -\n`
  const endless = `TY  - JOUR\nTI  - Endless\n${'KW  - word\n'.repeat(RECORD_CHARS_MOST / 4)}ER  -\n`
  const nul = 'TY  - JOUR\nTI  - A\0B\nER  -\n'
  const entries = summary(await parsed(`${long}${ris(1)}${endless}${ris(2)}${nul}${ris(3)}`))
  assert.deepEqual(
    entries.map((entry) => entry.replace(/^\d+: /, '')),
    [
      `line 3 is longer than ${LINE_BYTES_MOST} bytes`,
      'The effect of retries, part 1',
      `is longer than ${RECORD_CHARS_MOST} characters`,
      'The effect of retries, part 2',
      'holds a NUL character',
      'The effect of retries, part 3',
    ],
  )
})

test('CSV: a quote that never closes is given up with its line, not with the rest of the file', async () => {
  const rows = Math.ceil(RECORD_CHARS_MOST / 1000)
  const filler = `${'x'.repeat(999)}\n`.repeat(rows)
  const entries = summary(await parsed(`title\nOne\n"open\n${filler}Last\n`))
  assert.deepEqual(entries.slice(0, 2), ['One', `3: is longer than ${RECORD_CHARS_MOST} characters`])
  assert.equal(entries.length, 3 + rows)
  assert.equal(entries.at(-1), 'Last')
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { copiesIn } from './copies.ts'

const lines = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => `call(${from + at})`).join('\n')

test('ten lines that stand in two files are found from their first to their last', () => {
  const a = `start()\n${lines(1, 12)}\nend()`
  const b = `${lines(1, 12)}\nother()`
  assert.deepEqual(
    copiesIn(
      new Map([
        ['a.ts', a],
        ['b.ts', b],
      ]),
    ),
    [{ a: { path: 'a.ts', from: 2, to: 13 }, b: { path: 'b.ts', from: 1, to: 12 }, lines: 12 }],
  )
})

test('a copy is found within one file, and with other indentation and comments', () => {
  const again = lines(1, 10)
    .split('\n')
    .map((line) => `  // Why.\n\n  ${line}`)
    .join('\n')
  const [copy, ...others] = copiesIn(new Map([['a.ts', `${lines(1, 10)}\n/**\n * Its reason.\n */\n${again}`]]))
  assert.deepEqual([copy?.a.from, copy?.b.from, copy?.lines, others], [1, 16, 10, []])
})

test('nine lines, lists of imports, closing tags and ten equal lines in a row are no copies', () => {
  const imports = `import {\n${Array.from({ length: 12 }, (_, at) => `  name${at},`).join('\n')}\n} from './names.ts'`
  const tags = Array.from({ length: 10 }, (_, at) => `</t${at}>`).join('\n')
  const files = [lines(1, 9), `${imports}\none()`, tags, 'same()\n'.repeat(15)]
  assert.deepEqual(copiesIn(new Map([...files, ...files.slice(0, 3)].map((text, at) => [`${at}.ts`, text]))), [])
})

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { examine } from '../tools/doors/examine.ts'

/** Builds a small tree, breaks it on purpose, and answers what the doors say to it. */
async function complaints(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-doors-'))
  try {
    const tree = { 'package.json': '{"name":"onceonly","type":"module"}', ...files }
    for (const [path, text] of Object.entries(tree)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    return (await examine(folder)).complaints
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const words = { 'src/core/words.ts': 'export type Word = string\n' }

test('open doors are open', async () => {
  const found = await complaints({
    ...words,
    'src/core/digest.ts': "import { createHash } from 'node:crypto'\nexport const digest = createHash\n",
    'src/core/words.test.ts': "import 'node:test'\nimport type { Word } from './words.ts'\nexport type A = Word\n",
    'src/store/port.ts': "export type { Word } from '../core/words.ts'\n",
    'src/stores/sqlite/index.ts': "import './claims.ts'\nexport type { Word } from '../../store/port.ts'\n",
    'src/stores/sqlite/claims.ts': "import 'node:sqlite'\n",
    'src/stores/memory/index.ts': 'export const memory = 1\n',
    'src/ledger/run.test.ts': "import '../stores/memory/index.ts'\n",
    'src/http/adapters/hono.ts': "import '../protect.ts'\n",
    'src/http/protect.ts': 'export const protect = 1\n',
    'src/index.ts': "export type { Word } from './core/words.ts'\n",
  })
  assert.deepEqual(found, [])
})

const closed: readonly [string, Readonly<Record<string, string>>, string][] = [
  [
    'core imports no other room, not even a type',
    {
      'src/core/a.ts': "import type { B } from '../store/b.ts'\nexport type A = B\n",
      'src/store/b.ts': 'export type B = 1\n',
    },
    'doors of core: src/core/a.ts → src/store/b.ts',
  ],
  [
    'core imports no part of Node',
    { 'src/core/a.ts': "import 'node:crypto'\n" },
    'nothing in core but core: src/core/a.ts → crypto',
  ],
  [
    'the digest imports no other part of Node',
    { 'src/core/digest.ts': "import 'node:fs'\n" },
    'one part of Node for the digest: src/core/digest.ts → fs',
  ],
  [
    'a store imports no other store',
    { 'src/stores/sqlite/a.ts': "import '../memory/b.ts'\n", 'src/stores/memory/b.ts': 'export {}\n' },
    'doors of stores/*: src/stores/sqlite/a.ts → src/stores/memory/b.ts',
  ],
  [
    'a store does not import the ledger',
    { 'src/stores/sqlite/a.ts': "import '../../ledger/b.ts'\n", 'src/ledger/b.ts': 'export {}\n' },
    'doors of stores/*: src/stores/sqlite/a.ts → src/ledger/b.ts',
  ],
  [
    'the ledger imports no store',
    { 'src/ledger/a.ts': "import '../stores/memory/b.ts'\n", 'src/stores/memory/b.ts': 'export {}\n' },
    'doors of ledger: src/ledger/a.ts → src/stores/memory/b.ts',
  ],
  [
    'nobody imports testing',
    { 'src/cli/a.ts': "import '../testing/b.ts'\n", 'src/testing/b.ts': 'export {}\n' },
    'doors of cli: src/cli/a.ts → src/testing/b.ts',
  ],
  [
    'http does not import its adapters',
    { 'src/http/a.ts': "import './adapters/b.ts'\n", 'src/http/adapters/b.ts': 'export {}\n' },
    'doors of http: src/http/a.ts → src/http/adapters/b.ts',
  ],
  [
    'src does not import tools',
    { 'src/ledger/a.ts': "import '../../tools/b.ts'\n", 'tools/b.ts': 'export {}\n' },
    'src stands alone: src/ledger/a.ts → tools/b.ts',
  ],
  [
    'the service reaches into no room',
    { 'service/a.ts': "import '../src/core/words.ts'\n" },
    'only what the package exports: service/a.ts → src/core/words.ts',
  ],
  [
    'a room must be in the table',
    { 'src/attic/a.ts': 'export {}\n' },
    'src/attic/a.ts is in no room of tools/doors/table.ts',
  ],
]

for (const [name, files, complaint] of closed) {
  test(name, async () => assert.deepEqual(await complaints({ ...words, ...files }), [complaint]))
}

test('cycles are found, also those of types', async () => {
  const found = await complaints({
    'src/core/a.ts': "import type { B } from './b.ts'\nexport type A = B\n",
    'src/core/b.ts': "import type { A } from './a.ts'\nexport type B = A\n",
  })
  assert.deepEqual(found, ['no cycles: src/core/a.ts → src/core/b.ts → src/core/a.ts'])
})

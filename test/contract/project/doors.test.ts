import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { examine } from '../../../tools/doors/examine.ts'

/** Builds a small tree, breaks it on purpose, and returns the findings of the doors. */
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

const words = { 'src/ledger/core/words.ts': 'export type Word = string\n' }

test('open doors are open', async () => {
  const found = await complaints({
    ...words,
    'src/ledger/core/digest.ts': "import { createHash } from 'node:crypto'\nexport const digest = createHash\n",
    'src/ledger/core/words.test.ts':
      "import 'node:test'\nimport type { Word } from './words.ts'\nexport type A = Word\n",
    'src/ledger/store/port.ts': "export type { Word } from '../core/words.ts'\n",
    'src/ledger/stores/sqlite/index.ts': "import './claims.ts'\nexport type { Word } from '../../store/port.ts'\n",
    'src/ledger/stores/sqlite/claims.ts': "import 'node:sqlite'\n",
    'src/ledger/stores/memory/index.ts': 'export const memory = 1\n',
    'src/ledger/run.test.ts': "import './stores/memory/index.ts'\n",
    'src/http/adapters/hono.ts': "import '../protocol/protect.ts'\n",
    'src/http/protocol/protect.ts': 'export const protect = 1\n',
    'src/index.ts': "export type { Word } from './ledger/core/words.ts'\n",
  })
  assert.deepEqual(found, [])
})

const closed: readonly [string, Readonly<Record<string, string>>, string][] = [
  [
    'core imports no other room, not even a type',
    {
      'src/ledger/core/a.ts': "import type { B } from '../store/b.ts'\nexport type A = B\n",
      'src/ledger/store/b.ts': 'export type B = 1\n',
    },
    'doors of ledger/core: src/ledger/core/a.ts → src/ledger/store/b.ts',
  ],
  [
    'core imports no part of Node',
    { 'src/ledger/core/a.ts': "import 'node:crypto'\n" },
    'nothing in core but core: src/ledger/core/a.ts → crypto',
  ],
  [
    'the digest imports no other part of Node',
    { 'src/ledger/core/digest.ts': "import 'node:fs'\n" },
    'one part of Node for the digest: src/ledger/core/digest.ts → fs',
  ],
  [
    'a store imports no other store',
    { 'src/ledger/stores/sqlite/a.ts': "import '../memory/b.ts'\n", 'src/ledger/stores/memory/b.ts': 'export {}\n' },
    'doors of ledger/stores/*: src/ledger/stores/sqlite/a.ts → src/ledger/stores/memory/b.ts',
  ],
  [
    'a store does not import the ledger',
    { 'src/ledger/stores/sqlite/a.ts': "import '../../b.ts'\n", 'src/ledger/b.ts': 'export {}\n' },
    'doors of ledger/stores/*: src/ledger/stores/sqlite/a.ts → src/ledger/b.ts',
  ],
  [
    'the ledger imports no store',
    { 'src/ledger/a.ts': "import './stores/memory/b.ts'\n", 'src/ledger/stores/memory/b.ts': 'export {}\n' },
    'doors of ledger: src/ledger/a.ts → src/ledger/stores/memory/b.ts',
  ],
  [
    'no room imports testing',
    { 'src/admin/cli/a.ts': "import '../../testing/b.ts'\n", 'src/testing/b.ts': 'export {}\n' },
    'doors of admin/cli: src/admin/cli/a.ts → src/testing/b.ts',
  ],
  [
    'the protocol does not import its adapters',
    { 'src/http/protocol/a.ts': "import '../adapters/b.ts'\n", 'src/http/adapters/b.ts': 'export {}\n' },
    'doors of http/protocol: src/http/protocol/a.ts → src/http/adapters/b.ts',
  ],
  [
    'no wing imports admin',
    { 'src/http/gateway/a.ts': "import '../../admin/console/b.ts'\n", 'src/admin/console/b.ts': 'export {}\n' },
    'doors of http/gateway: src/http/gateway/a.ts → src/admin/console/b.ts',
  ],
  [
    'wings do not import each other',
    { 'src/runs/a.ts': "import '../http/protocol/b.ts'\n", 'src/http/protocol/b.ts': 'export {}\n' },
    'doors of runs: src/runs/a.ts → src/http/protocol/b.ts',
  ],
  [
    'a door to a room opens no room inside of it',
    { 'src/http/client/a.ts': "import '../../ledger/b.ts'\n", 'src/ledger/b.ts': 'export {}\n' },
    'doors of http/client: src/http/client/a.ts → src/ledger/b.ts',
  ],
  [
    'src does not import tools',
    { 'src/ledger/a.ts': "import '../../tools/b.ts'\n", 'tools/b.ts': 'export {}\n' },
    'src stands alone: src/ledger/a.ts → tools/b.ts',
  ],
  [
    'the service reaches into no room',
    { 'service/a.ts': "import '../src/ledger/core/words.ts'\n" },
    'only what the package exports: service/a.ts → src/ledger/core/words.ts',
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
    'src/ledger/core/a.ts': "import type { B } from './b.ts'\nexport type A = B\n",
    'src/ledger/core/b.ts': "import type { A } from './a.ts'\nexport type B = A\n",
  })
  assert.deepEqual(found, ['no cycles: src/ledger/core/a.ts → src/ledger/core/b.ts → src/ledger/core/a.ts'])
})

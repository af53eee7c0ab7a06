import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { root } from '../../../tools/command.ts'
import { examplesOf } from '../../support/examples.ts'
import { databaseUrl, freshPool, testPostgres } from '../../support/stores/postgres/store.ts'
import { app, installOrms } from './install.ts'
import { cases } from './kit.ts'
import { allRows } from './rows.ts'
import {
  followsSavepoints,
  keepsItsConnection,
  namesTheWayWithoutAnother,
  needsNoOtherConnection,
  refusesEncryptedPlace,
  refusesOpenTransactions,
  refusesOtherDatabases,
  saysThatTablesAreToCome,
  sharedCases,
} from './shared.ts'
import { wingCases } from './wings.ts'

/** Every case on every ORM, in one file: they are installed once. */

const orms = join(root, 'src', 'ledger', 'orms')
const missing = await installOrms()
const rows = missing === false ? await allRows('server') : []

test('the types of `tx` are those of the ORMs, and what an editor shows of our entries compiles', {
  skip: missing,
}, (t) => {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-examples-'))
  t.after(() => rmSync(folder, { recursive: true }))
  symlinkSync(join(app, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  const entries = globSync('*.ts', { cwd: orms })
  const examples = entries.flatMap((file) => examplesOf(readFileSync(join(orms, file), 'utf8')))
  assert.equal(examples.length, 8, 'one for each entry')
  for (const [index, text] of examples.entries()) writeFileSync(join(folder, `${index}.ts`), `${text}\nexport {}\n`)
  const { include } = JSON.parse(readFileSync(join(app, 'tsconfig.json'), 'utf8')) as { readonly include: string[] }
  const compilerOptions = { noPropertyAccessFromIndexSignature: false, typeRoots: [join(root, 'node_modules/@types')] }
  const config = {
    extends: join(app, 'tsconfig.json'),
    compilerOptions,
    include: ['*.ts', ...include.map((each) => join(app, each))],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  assert.equal(execFileSync(process.execPath, [compiler, '-p', folder, '--pretty', 'false'], { encoding: 'utf8' }), '')
})

for (const guide of missing === false ? globSync('guide/*.ts', { cwd: app }) : []) {
  testPostgres(`${guide} runs`, async (t) => {
    const pool = await freshPool(t)
    const database = `guide_${randomUUID().slice(0, 8)}`
    await pool.query(`CREATE DATABASE ${database}`)
    const url = new URL(await databaseUrl())
    url.pathname = `/${database}`
    const flags = ['--conditions=onceonly-source', '--disable-warning=ExperimentalWarning']
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const how = { env: { ...env, DATABASE_URL: url.href }, timeout: 60_000 }
    await promisify(execFile)(process.execPath, [...flags, join(app, guide)], how)
    await pool.query(`DROP DATABASE ${database} WITH (FORCE)`)
  })
}

if (missing === false) {
  testPostgres('an open transaction is no database', refusesOpenTransactions)
  testPostgres('a transaction that is open needs no other connection', needsNoOtherConnection)
  testPostgres('`run` in a transaction of the user, on a pool that is taken, names `within`', namesTheWayWithoutAnother)
  testPostgres('a transaction on the only connection says that tables are not made yet', saysThatTablesAreToCome)
  testPostgres('a transaction of the user refuses an encrypted store without keys', refusesEncryptedPlace)
  testPostgres('a released connection of TypeORM stays out of the pool', keepsItsConnection)
  testPostgres('within: a savepoint of a controlled transaction of Kysely undoes its record too', followsSavepoints)
  test('an ORM on another database is refused with what to do', refusesOtherDatabases)
}

for (const row of rows) {
  for (const [name, each] of Object.entries({ ...cases, ...sharedCases, ...wingCases })) {
    testPostgres(`${row.name}: ${name}`, async (t) => {
      const reason = row.skips[name]
      if (reason === undefined) await each(t, row)
      else t.skip(reason)
    })
  }
}

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLedger, isOnceError } from 'onceonly'
import { sqliteStore } from 'onceonly/sqlite'

const identity = { tenant: 'acme', caller: 'ada', key: 'k1' }
const tooOld = (error: unknown) => isOnceError(error, 'schema_too_old')

test('a SQLite store that only checks its tables creates no file, and works where the tables are', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-migrate-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'once.db')
  const runOn = async (migrate: 'auto' | 'check', key: string) => {
    await using store = sqliteStore(path, { migrate })
    await using once = createLedger({ store, background: false })
    return await once.operation({ name: 'pay', effect: 'external' }).run({ ...identity, key }, null, () => 'paid')
  }
  await assert.rejects(runOn('check', 'k1'), tooOld)
  assert.equal(existsSync(path), false)
  assert.equal(await runOn('auto', 'k2'), 'paid')
  assert.equal(await runOn('check', 'k3'), 'paid')
})

test('a store that only checks refuses the missing tables of another wing', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-migrate-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'once.db')
  const steps = [{ version: 1, oldestCode: 1, up: { sqlite: ['CREATE TABLE mine (id INTEGER)'], postgres: [] } }]
  {
    await using auto = sqliteStore(path)
    await auto.sql.query('select 1')
  }
  await using checked = sqliteStore(path, { migrate: 'check' })
  await assert.rejects(checked.sql.migrate('mine', steps), tooOld)
  await using auto = sqliteStore(path)
  await auto.sql.migrate('mine', steps)
  await checked.sql.migrate('mine', steps)
})

test('another word for `migrate` is refused', () => {
  assert.throws(() => sqliteStore('once.db', { migrate: 'never' as never }), {
    code: 'bad_option',
    message: "sqliteStore: `migrate` must be 'auto' or 'check', not \"never\".",
  })
})

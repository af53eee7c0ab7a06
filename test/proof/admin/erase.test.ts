import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { createLedger, isOnceError } from 'onceonly'
import { sqliteStore } from 'onceonly/sqlite'

const RECORDS = 1_000
const OTHERS = 10
const PATIENCE_MS = 60_000

/** Runs what has no record yet, and answers how many effects ran and what the others were refused with. */
async function payAll(file: string, tenant: string, count: number) {
  const store = sqliteStore(file)
  const ledger = createLedger({ store, background: false })
  const pay = ledger.operation<number>({ name: 'pay', effect: 'external' })
  let ran = 0
  const codes = new Set<string>()
  const one = async (n: number) => {
    try {
      await pay.run({ tenant, caller: 'ann', key: `key-${n}` }, n, () => `receipt of ${tenant} ${++ran}`)
    } catch (error) {
      assert.ok(isOnceError(error))
      codes.add(error.code)
    }
  }
  await Promise.all(Array.from({ length: count }, (_, n) => one(n)))
  await ledger.stop()
  await store.stop()
  return { ran, codes: [...codes] }
}

function eraseWorkspace(file: string) {
  const program = resolve(import.meta.dirname, '../../../src/admin/cli/main.ts')
  const args = ['erase', 'workspace', 'acme', '--yes', '--json', '--store', file]
  return spawn(process.execPath, ['--conditions=onceonly-source', program, ...args], { stdio: 'pipe' })
}

/** How many responses of the tenant are left, past every interface. */
function left(db: DatabaseSync, tenant: string): number {
  const asked = db.prepare(`SELECT count(*) AS n FROM onceonly_records WHERE tenant = ? AND outcome LIKE '%receipt%'`)
  return Number(asked.get(tenant)?.['n'])
}

test('erasing that is killed in the middle is finished by the next ones, and no key is free meanwhile', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-erase-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'once.db')
  assert.equal((await payAll(file, 'acme', RECORDS)).ran, RECORDS)
  assert.equal((await payAll(file, 'other', OTHERS)).ran, OTHERS)
  const db = new DatabaseSync(file, { readOnly: true })
  t.after(() => db.close())

  const killed = eraseWorkspace(file)
  const over = once(killed, 'close')
  const giveUpMs = performance.now() + PATIENCE_MS
  // As often as the event loop turns: it is over soon after it began.
  while (left(db, 'acme') === RECORDS && performance.now() < giveUpMs) {
    await new Promise((resolve) => void setImmediate(resolve))
  }
  killed.kill('SIGKILL')
  await over
  const rest = left(db, 'acme')
  assert.ok(rest > 0 && rest < RECORDS, `${rest} are left after the kill`)
  assert.equal((await payAll(file, 'acme', RECORDS)).ran, 0)

  // Two at once, as two operators would.
  const ends = await Promise.all(
    [eraseWorkspace(file), eraseWorkspace(file)].map(async (child) => {
      const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
      assert.equal(code, 0, err)
      return (JSON.parse(out) as { records: number }).records
    }),
  )
  assert.equal(
    ends.reduce((sum, count) => sum + count, 0),
    rest,
    'each was erased by one of them',
  )
  assert.equal(left(db, 'acme'), 0)
  assert.deepEqual(await payAll(file, 'acme', RECORDS), { ran: 0, codes: ['outcome_not_stored'] })
  assert.equal(left(db, 'other'), OTHERS)
  assert.deepEqual(await payAll(file, 'other', OTHERS), { ran: 0, codes: [] })
})

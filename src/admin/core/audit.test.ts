import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { freshStore } from '../../ledger/stores/sqlite/test-store.ts'
import type { Audit } from './audit.ts'
import { createAudit, OPERATE_ROOM, operateMigrations } from './audit.ts'

const actor = { by: 'ada', via: 'test' }

/** An audit whose store does not take lines with this result. */
function openAudit(t: TestContext, lost: string): Audit {
  const { sql } = freshStore(t)
  const losing: typeof sql = {
    ...sql,
    query: async (text, values) => {
      if (values?.includes(lost) === true) throw new Error('The store is away.')
      return await sql.query(text, values)
    },
  }
  return createAudit(losing, () => sql.migrate(OPERATE_ROOM, operateMigrations))
}

test('a completed action is never reported as refused, although its audit could not be written', async (t) => {
  const audit = openAudit(t, 'done')
  assert.equal(await audit.act(actor, 'release', { id: 1 }, async () => 'released'), 'released')
  assert.deepEqual(
    (await audit.list({})).rows.map(({ result }) => result),
    ['asked'],
  )
})

test('a refused operator gets the reason, although the audit could not be written', async (t) => {
  const audit = openAudit(t, 'refused')
  const refused = audit.act(actor, 'release', { id: 1 }, () => Promise.reject(new Error('It is held.')))
  await assert.rejects(refused, /It is held/)
})

test('what cannot be written down is not done', async (t) => {
  const audit = openAudit(t, 'asked')
  let done = false
  const work = async () => {
    done = true
  }
  await assert.rejects(audit.act(actor, 'release', { id: 1 }, work), /The store is away/)
  assert.equal(done, false)
})

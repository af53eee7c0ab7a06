import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { isOnceError, OnceError } from '../../core/errors.ts'
import { createGroupCommit, type GroupMember } from './group.ts'
import { freshStore, TRANSACTION } from './test-store.ts'
import { createWriterQueue } from './writer.ts'

/** Calls that come while a transaction holds the writer, so that they wait for it together. */
async function together<T>(
  t: TestContext,
  calls: (query: (text: string) => Promise<unknown>) => readonly Promise<T>[],
) {
  const store = freshStore(t)
  const query = (text: string) => store.sql.query(text)
  await query('CREATE TABLE notes (name TEXT PRIMARY KEY)')
  const open = Promise.withResolvers<void>()
  const holding = store.transactions.run(() => open.promise, TRANSACTION)
  const ended = Promise.allSettled(calls(query))
  open.resolve()
  await holding
  const settled = await ended
  return { settled, kept: (await store.sql.query<{ name: string }>('SELECT name FROM notes')).map(({ name }) => name) }
}

test('requests that wait together are committed together, as many as fit; a single one at once', async () => {
  const groups: number[] = []
  let free = true
  const run = (members: readonly GroupMember[]) => {
    groups.push(members.length)
    for (const { resolve } of members) resolve(members.length)
  }
  const late = () => new OnceError('store_busy', 'Late.')
  const { write } = createGroupCommit(createWriterQueue(), { begin: () => free, late, run })
  const lonely = write(1_000, () => null)
  assert.deepEqual(groups, [1])
  await lonely
  free = false
  const many = Array.from({ length: 100 }, () => write(5_000, () => null))
  const hasty = write(5, () => null)
  await assert.rejects(hasty, (error) => isOnceError(error, 'store_busy'))
  free = true
  await Promise.all(many)
  assert.deepEqual(groups, [1, 64, 36])
})

test('a turn whose members have all left is given up', async () => {
  const queue = createWriterQueue()
  const late = () => new OnceError('store_busy', 'Late.')
  const { write } = createGroupCommit(queue, {
    begin: () => false,
    late,
    run: () => assert.fail('nothing is left to run'),
  })
  await assert.rejects(write(5, () => null))
  await queue.idle()
})

test('a member that fails is undone alone', async (t) => {
  const { settled, kept } = await together(t, (query) => [
    query(`INSERT INTO notes VALUES ('one')`),
    query(`INSERT INTO notes VALUES ('two'), ('one')`),
    query(`INSERT INTO notes VALUES ('three')`),
  ])
  assert.deepEqual(
    settled.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  assert.deepEqual(kept, ['one', 'three'])
})

test('a full disk undoes the whole group, and every caller learns that nothing was applied', async (t) => {
  const { settled, kept } = await together(t, (query) => [
    query(`INSERT INTO notes VALUES ('one')`),
    query('PRAGMA max_page_count = 30'),
    query(`INSERT INTO notes VALUES ('${'x'.repeat(500_000)}')`),
    query(`INSERT INTO notes VALUES ('last')`),
  ])
  for (const [index, result] of settled.entries()) {
    const name = ['one', '', 'x'.repeat(500_000), 'last'][index] as string
    if (result.status === 'rejected') {
      assert.ok(isOnceError(result.reason, 'store_unavailable') && result.reason.applied === 'no')
      assert.ok(!kept.includes(name))
    } else if (name !== '') assert.ok(kept.includes(name))
  }
  assert.equal(settled[2]?.status, 'rejected')
})

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { isOnceError, OnceError } from '../../core/errors.ts'
import type { Connection } from './connection.ts'
import { createWriterGroup } from './group.ts'
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

const late = () => new OnceError('store_busy', 'Late.')

test('members that wait together are committed together, as many as fit; a single one does not wait', async () => {
  const groups: number[] = []
  let free = true
  const { write, onFlush } = createWriterGroup(createWriterQueue(), {
    begin: () => free,
    decider: null,
    late,
    translate: (error) => error,
    commit: (work, given) =>
      work({ statements: { prepared: () => ({ run: () => {} }) } } as unknown as Connection, given),
  })
  onFlush((members) => groups.push(members.length))
  const add = async (waitMs: number) => await write({ kind: 'work', work: () => null }, waitMs)
  await add(1_000)
  assert.deepEqual(groups, [1])
  free = false
  const many = Array.from({ length: 100 }, () => add(5_000))
  await assert.rejects(add(5), (error) => isOnceError(error, 'store_busy'))
  free = true
  await Promise.all(many)
  assert.deepEqual(groups, [1, 64, 36])
})

test('a turn whose members have all left is given up', async () => {
  const queue = createWriterQueue()
  const { write } = createWriterGroup(queue, {
    begin: () => false,
    decider: null,
    late,
    translate: (error) => error,
    commit: () => assert.fail('no member is left'),
  })
  await assert.rejects(async () => await write({ kind: 'work', work: () => null }, 5))
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

test('a single member is not committed while another process holds the lock', async () => {
  let [free, begun] = [true, false]
  const { write } = createWriterGroup(createWriterQueue(), {
    begin: () => (begun = free),
    decider: null,
    late,
    translate: (error) => error,
    commit: (work, given) => {
      assert.ok(begun)
      begun = false
      return work({} as Connection, given)
    },
  })
  const add = () => write({ kind: 'work', work: () => 'done' }, 60_000)
  await add()
  await new Promise((resolve) => void setImmediate(() => setImmediate(resolve)))
  free = false
  const waiting = add()
  assert.ok(waiting instanceof Promise)
  free = true
  assert.deepEqual(await waiting, { value: 'done' })
})

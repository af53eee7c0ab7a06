import assert from 'node:assert/strict'
import { createLeaseSql, leaseColumns } from '../../../src/ledger/store/leases.ts'
import { createMembers, membersTable } from '../../../src/ledger/store/members.ts'
import type { Place } from '../../support/place.ts'
import { onEveryPlace, sqlOf } from '../../support/place.ts'

/** The rules of leases in tables, on every SQL store; how the wings use them is tested with the wings. */

const LEASE_MS = 60_000
const CALL = { timeoutMs: 60_000, lockMs: 60_000, refuseTwinOf: null }
const TASKS = { table: 'tasks', key: 'id', keyType: 'bigint' } as const

interface Task {
  readonly id: number
  readonly fence: number
}

async function tasksOf(place: Place, count: number) {
  const sql = sqlOf(place.store)
  await sql.query(`create table tasks (id bigint primary key, ${leaseColumns('text', 'bigint')})`)
  for (let id = 1; id <= count; id++) await sql.query('insert into tasks (id) values (?)', [id])
  const leases = createLeaseSql(sql, TASKS)
  const text = leases.takeText({ order: 'id', returning: 'id, fence' })
  const take = async (holder: string, most: number): Promise<readonly Task[]> => {
    const rows = await sql.query<{ id: unknown; fence: unknown }>(text, [holder, LEASE_MS, most])
    return rows.map(({ id, fence }) => ({ id: Number(id), fence: Number(fence) })).toSorted((a, b) => a.id - b.id)
  }
  return { sql, leases, take }
}

onEveryPlace('a take is bounded, and what is held is not taken before its end', async (place) => {
  const { take } = await tasksOf(place, 3)
  assert.deepEqual(await take('one', 2), [
    { id: 1, fence: 1 },
    { id: 2, fence: 1 },
  ])
  assert.deepEqual(await take('two', 3), [{ id: 3, fence: 1 }])
  await place.advance(LEASE_MS - 10_000)
  assert.deepEqual(await take('two', 3), [])
  await place.advance(10_000)
  assert.deepEqual(
    (await take('two', 3)).map(({ fence }) => fence),
    [2, 2, 2],
  )
})

onEveryPlace(
  'a renewal extends what is still held, also past its end, and nothing that was taken since',
  async (place) => {
    const { leases, take } = await tasksOf(place, 2)
    const held = await take('one', 2)
    await place.advance(LEASE_MS + 1)
    assert.deepEqual(await leases.renew(held, LEASE_MS), new Set([1, 2]))
    assert.deepEqual(await take('two', 2), [])
    await place.advance(LEASE_MS + 1)
    await take('two', 1)
    assert.deepEqual(await leases.renew(held, LEASE_MS), new Set([2]))
  },
)

onEveryPlace('what was released is free after its delay, and its old fence is worth nothing', async (place) => {
  const { sql, leases, take } = await tasksOf(place, 2)
  const [first, second] = await take('one', 2)
  assert.ok(first !== undefined && second !== undefined)
  await leases.release([first])
  await leases.release([second], { delayMs: 1_000 })
  assert.deepEqual(await leases.renew([first, second], LEASE_MS), new Set())
  assert.deepEqual(await take('two', 2), [{ id: 1, fence: 3 }])
  await place.advance(1_000)
  assert.deepEqual(await take('two', 2), [{ id: 2, fence: 3 }])
  // A late release of the first holder ends nothing of the second.
  await leases.release([first, second])
  assert.deepEqual(await take('three', 2), [])
  const gone = await sql.query(`delete from tasks where ${leases.held} returning id`, [leases.listed([first, second])])
  assert.deepEqual(gone, [])
  await leases.releaseAll('two')
  assert.equal((await take('three', 2)).length, 2)
})

onEveryPlace('a lock names the rows that are still held', async (place) => {
  const { leases, take } = await tasksOf(place, 2)
  const held = await take('one', 2)
  await leases.release(held.slice(0, 1))
  await place.store.transactions.run(async ({ tx }) => {
    assert.deepEqual(await leases.lock(tx, held), new Set([2]))
  }, CALL)
})

onEveryPlace(
  'a claim takes one row, renews it for its holder, and is refused to others until its end',
  async (place) => {
    const { sql, leases } = await tasksOf(place, 0)
    const text = leases.claimText('fence')
    const claim = async (holder: string) => {
      const [row] = await sql.query<{ fence: unknown }>(text, [7, holder, LEASE_MS])
      return row === undefined ? null : Number(row.fence)
    }
    assert.equal(await claim('one'), 1)
    assert.equal(await claim('two'), null)
    await place.advance(LEASE_MS - 10_000)
    assert.equal(await claim('one'), 1)
    await place.advance(10_000)
    assert.equal(await claim('two'), null)
    await place.advance(LEASE_MS)
    // Even for its old holder: another process may have taken it for gone.
    assert.equal(await claim('one'), 2)
    await place.advance(LEASE_MS)
    assert.equal(await claim('two'), 3)
  },
)

onEveryPlace('a member lives for as long as it renews, and hears when it was removed', async (place) => {
  const sql = sqlOf(place.store)
  await sql.query(membersTable('workers', 'text', 'bigint'))
  const members = createMembers(sql, 'workers')
  assert.equal((await members.join('one', LEASE_MS)).living, 1)
  assert.equal((await members.join('two', 2 * LEASE_MS)).living, 2)
  await place.advance(LEASE_MS)
  assert.equal((await members.join('two', LEASE_MS)).living, 1)
  assert.equal(await members.renew('one', LEASE_MS), true)
  assert.equal((await members.join('two', LEASE_MS)).living, 2)
  await place.advance(LEASE_MS)
  await members.removeLapsed(1_000)
  assert.equal(await members.renew('two', LEASE_MS), true)
  await place.advance(2 * LEASE_MS)
  await members.removeLapsed()
  assert.equal(await members.renew('two', LEASE_MS), false)
  await members.join('two', LEASE_MS)
  await members.leave('two')
  assert.equal((await members.join('three', LEASE_MS)).living, 1)
})

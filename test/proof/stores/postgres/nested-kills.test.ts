import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { createLedger } from 'onceonly'
import type { Pool } from 'pg'
import { until } from '../../../../src/testing/until.ts'
import { history } from '../../../support/stores/postgres/nested.ts'
import { assertRowsAgree, placeOf, play } from '../../../support/stores/postgres/nested-kills.ts'
import { SHOP } from '../../../support/stores/postgres/shop.ts'
import { databaseUrl, freshPool, freshSchema, openStore, testPostgres } from '../../../support/stores/postgres/store.ts'

/** `ONCEONLY_HISTORIES` sets how many: 1 000 take about a minute. A fifth of them run in processes that are killed. */
const HISTORIES = Number(process.env['ONCEONLY_HISTORIES'] ?? 300)
const IN_PROCESSES = Math.round(HISTORIES / 5)
const PER_PROCESS = 10
/** More steps than most histories have: of the others, the session is ended while they commit, or not at all. */
const STEPS_MOST = 12
/** A process is killed within this time after it reported its last history: about as long as one takes. */
const WITHIN_MS = 20

async function shop(t: TestContext) {
  const schema = freshSchema()
  const pool = await freshPool(t)
  const store = await openStore(t, { schema }, pool)
  await store.sql.migrate('shop', SHOP)
  const ledger = createLedger({ store, background: false })
  t.after(() => ledger.stop())
  // Observers have sessions of their own, which are not ended.
  const onlookers = await freshPool(t)
  return { schema, place: placeOf(ledger), pool: onlookers, store: await openStore(t, { schema }, onlookers) }
}

async function untilGone(pool: Pool, condition: string, value: unknown): Promise<void> {
  await until('the sessions are gone', async () => {
    const { rows } = await pool.query(`SELECT 1 FROM pg_stat_activity WHERE ${condition}`, [value])
    return rows.length === 0
  })
}

const ownSessions = HISTORIES - IN_PROCESSES

testPostgres(
  `${ownSessions} random effects whose session is ended leave the rows that their records name`,
  async (t) => {
    const { pool, store, place } = await shop(t)
    const keys: string[] = []
    let [ended, settled] = [0, 0]
    const kill = fc.record({ before: fc.nat({ max: STEPS_MOST }), awaited: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(history, kill, async (each, { before, awaited }) => {
        const key = `k${keys.length}`
        keys.push(key)
        let steps = 0
        const pids = new Set<number>()
        const executed = await play(place, key, each, async (tx) => {
          if (steps++ !== before) return
          const { processID: pid } = tx.client as unknown as { processID: number }
          pids.add(pid)
          const ending = pool.query('SELECT pg_terminate_backend($1)', [pid])
          // Else it ends the session in some later statement, or in the commit.
          if (awaited) await ending
        })
        for (const pid of pids) await untilGone(pool, 'pid = $1', pid)
        const succeeded = (await assertRowsAgree(store, [key])).has(key)
        if (executed) assert.ok(succeeded, 'the caller got its success')
        ended += pids.size
        if (succeeded) settled += 1
        // What was undone can be done again, under the same key.
        else if (each.ends === 'returns') {
          // The pool may not have noticed yet that a session is gone.
          await until('it is done again', () => play(place, key, { ...each, steps: [{ kind: 'insert' }] }))
          await assertRowsAgree(store, [key])
        }
      }),
      { numRuns: ownSessions, endOnFailure: true },
    )
    await assertRowsAgree(store, keys)
    assert.ok(ended > ownSessions / 4, `only ${ended} sessions were ended`)
    assert.ok(settled > 0, 'none succeeded')
  },
)

testPostgres(
  `${IN_PROCESSES} random effects in processes that are killed leave the rows that records name`,
  async (t) => {
    const { schema, pool, store } = await shop(t)
    const url = await databaseUrl()
    const worker = fileURLToPath(import.meta.resolve('./nested-worker.ts'))
    const flags = ['--conditions=onceonly-source', '--disable-warning=ExperimentalWarning']
    const random = (most: number) => Math.floor(Math.random() * most)
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    let histories = 0
    let killed = 0
    while (histories < IN_PROCESSES) {
      const name = `child${histories}`
      const task = [url, schema, name, String(random(2 ** 31)), String(PER_PROCESS)]
      const child = spawn(process.execPath, [...flags, worker, ...task], {
        env,
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      })
      const exit = once(child, 'exit')
      const keys: string[] = []
      const last = 1 + random(PER_PROCESS)
      const enough = Promise.withResolvers<void>()
      child.on('message', (key: string | null) => {
        if (key !== null) keys.push(key)
        if (key === null || keys.length === last) enough.resolve()
      })
      await Promise.race([enough.promise, exit])
      await sleep(random(WITHIN_MS))
      if (child.exitCode === null && child.kill('SIGKILL')) killed += 1
      await exit
      await untilGone(pool, 'application_name = $1', name)
      assert.ok(keys.length > 0, 'it began')
      await assertRowsAgree(store, keys)
      histories += keys.length
    }
    assert.ok(killed > 0)
  },
)

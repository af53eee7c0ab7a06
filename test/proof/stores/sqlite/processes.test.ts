import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isOnceError } from '../../../../src/ledger/core/errors.ts'
import { sqliteStore } from '../../../../src/ledger/stores/sqlite/index.ts'
import {
  CALL,
  claimIn,
  claimOf,
  freshPath,
  leaseOf,
  openStore,
  settleOf,
  sleep,
  TRANSACTION,
} from '../../../../src/ledger/stores/sqlite/test-store.ts'
import { applyTo } from '../../../../src/testing/apply-all.ts'

/** Two processes on one file. This file is its own second process: with a role it plays it, without one it tests. */

type Role = 'hold' | 'race' | 'settle' | 'open' | 'die'

const [role, path = '', argument = ''] = process.argv.slice(2) as [Role?, string?, string?]
if (role !== undefined) await play(role)

async function play(part: Role): Promise<void> {
  switch (part) {
    case 'hold': {
      const db = new DatabaseSync(path)
      db.exec('BEGIN IMMEDIATE')
      process.send?.('held')
      await once(process, 'message')
      db.exec('ROLLBACK')
      db.close()
      process.disconnect()
      return
    }
    case 'race': {
      const store = sqliteStore(path)
      let won = 0
      const fences: number[] = []
      for (let n = 0; n < Number(argument); n++) {
        const applied = await store.claims.apply(claimOf(`race ${n}`), { timeoutMs: 30_000 })
        if (applied === undefined || 'error' in applied) throw new Error('refused', { cause: applied?.error })
        if (applied.decision.kind !== 'first_attempt') continue
        won++
        fences.push(applied.decision.lease.fence)
        await store.claims.apply(settleOf(applied.decision.lease), { timeoutMs: 30_000 })
      }
      await store.stop()
      process.send?.({ won, fences })
      return
    }
    case 'settle': {
      const store = sqliteStore(path)
      const lease = leaseOf(await store.claims.apply(claimOf('joined'), CALL))
      process.send?.('claimed')
      await once(process, 'message')
      await store.claims.apply(settleOf(lease), CALL)
      await store.stop()
      process.disconnect()
      return
    }
    case 'open': {
      const store = sqliteStore(path)
      const { fence } = await claimIn(store, `opened by ${process.pid}`)
      await store.stop()
      process.send?.({ fence })
      return
    }
    case 'die': {
      const store = sqliteStore(path)
      for (let n = 0; ; n++) {
        const lease = await claimIn(store, `doomed ${n}`)
        // Sent only after the commit, so that the receiver may rely on it.
        process.send?.({ id: lease.id, fence: lease.fence })
        if (n % 3 === 0) await store.transactions.run(async ({ tx }) => await tx.query('SELECT 1'), TRANSACTION)
      }
    }
  }
}

interface Second {
  readonly child: ChildProcess
  message<T>(): Promise<T>
  ended(): Promise<number | null>
}

function start(t: TestContext, part: Role, file: string, value: string | number = ''): Second {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), part, file, String(value)], {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exit = once(child, 'exit') as Promise<[number | null]>
  t.after(() => {
    if (child.exitCode === null) child.kill('SIGKILL')
  })
  return {
    child,
    message: async <T>() => ((await once(child, 'message')) as [T])[0],
    ended: async () => (await exit)[0],
  }
}

if (role === undefined) {
  test('while another process holds the writer, the event loop runs and the claim waits', async (t) => {
    const file = freshPath(t)
    const store = openStore(t, file)
    await claimIn(store, 'before')
    const other = start(t, 'hold', file)
    await other.message()
    const short = applyTo(store, claimOf('impatient'), { timeoutMs: 50 })
    await assert.rejects(short, (error) => isOnceError(error, 'store_unavailable') && error.applied === 'no')
    const transaction = store.transactions.run(async () => undefined, { ...TRANSACTION, lockMs: 50 })
    await assert.rejects(transaction, (error) => isOnceError(error, 'store_busy') && error.applied === 'no')
    assert.equal((await store.queries.count({}, CALL)).in_progress, 1, 'reads do not wait')
    const patient = claimIn(store, 'patient')
    // Only a process whose event loop runs meanwhile can ask the other one to release the writer.
    for (let ticks = 0; ticks < 20; ticks++) await sleep(5)
    other.child.send('let go')
    await patient
    assert.equal(await other.ended(), 0)
  })

  test('a store that is up to date opens while another process holds the writer', async (t) => {
    const file = freshPath(t)
    await claimIn(openStore(t, file), 'before')
    // It never releases the writer: a caller that waited for it would get no answer.
    await start(t, 'hold', file).message()
    const { records } = await openStore(t, file).claims.read([claimOf('before').id], CALL)
    assert.equal(records[0]?.state, 'in_progress')
  })

  test('two processes that claim the same keys never both win, and fences are never shared', async (t) => {
    const file = freshPath(t)
    const others = [start(t, 'race', file, 150), start(t, 'race', file, 150)]
    const results = await Promise.all(others.map((other) => other.message<{ won: number; fences: number[] }>()))
    assert.equal(
      results.reduce((sum, { won }) => sum + won, 0),
      150,
    )
    const fences = results.flatMap((result) => result.fences)
    assert.equal(new Set(fences).size, fences.length)
    for (const { fences: own } of results)
      assert.deepEqual(
        own,
        own.toSorted((a, b) => a - b),
      )
    assert.deepEqual(await Promise.all(others.map((other) => other.ended())), [0, 0])
  })

  test('a joiner is woken by a settle in another process, and not by unrelated commits', async (t) => {
    const file = freshPath(t)
    const store = openStore(t, file)
    const other = start(t, 'settle', file)
    await other.message()
    const wakes: unknown[] = []
    const woken = Promise.withResolvers<void>()
    const watch = store.claims.watch((ids) => {
      wakes.push(ids)
      woken.resolve()
    })
    await watch.ready
    const twin = await store.claims.apply(claimOf('joined', { wait: true }), CALL)
    assert.ok(twin !== undefined && 'decision' in twin && twin.decision.kind === 'in_progress')
    // Commits of another store that wake no caller.
    const beside = openStore(t, file)
    for (let n = 0; n < 5; n++) await claimIn(beside, `beside ${n}`)
    // A chance for wakes that must not come.
    await sleep(60)
    assert.deepEqual(wakes, [])
    other.child.send('settle it')
    await woken.promise
    assert.deepEqual(wakes, [null])
    const { records } = await store.claims.read([claimOf('joined').id], CALL)
    assert.equal(records[0]?.state, 'succeeded')
    watch.stop()
    assert.equal(await other.ended(), 0)
  })

  test('four processes make one fresh file their store at once', async (t) => {
    const file = freshPath(t)
    const others = Array.from({ length: 4 }, () => start(t, 'open', file))
    const results = await Promise.all(others.map((other) => other.message<{ fence: number }>()))
    assert.deepEqual(
      results.map(({ fence }) => fence).toSorted((a, b) => a - b),
      [1, 2, 3, 4],
    )
    const rows = await openStore(t, file).sql.query('SELECT room, version FROM onceonly_migrations')
    assert.deepEqual(rows, [{ room: 'ledger', version: 1 }])
  })

  test('what was acknowledged survives kill -9, and the next process continues', async (t) => {
    const file = freshPath(t)
    const acknowledged: { id: string; fence: number }[] = []
    for (let life = 0; life < 3; life++) {
      const other = start(t, 'die', file)
      const enough = Promise.withResolvers<void>()
      const heard = acknowledged.length
      other.child.on('message', (message: { id: string; fence: number }) => {
        acknowledged.push(message)
        if (acknowledged.length >= heard + 10 + life) enough.resolve()
      })
      await enough.promise
      other.child.kill('SIGKILL')
      await other.ended()
      const store = openStore(t, file)
      const read = await store.claims.read(
        acknowledged.map(({ id }) => id),
        CALL,
      )
      assert.deepEqual(
        read.records.map((record) => record?.fence),
        acknowledged.map(({ fence }) => fence),
      )
      const next = await claimIn(store, `after life ${life}`)
      assert.ok(acknowledged.every(({ fence }) => fence < next.fence))
      // The next doomed process claims the same keys: free them.
      for (const { id } of acknowledged.splice(0)) {
        await store.claims.apply({ kind: 'forget', id, by: 'me', ifFence: null, onlyRunning: false }, CALL)
      }
      const { rows } = await store.queries.list({ state: 'in_progress' }, { limit: 500, cursor: null }, CALL)
      for (const { record } of rows) {
        await store.claims.apply({ kind: 'forget', id: record.id, by: 'me', ifFence: null, onlyRunning: false }, CALL)
      }
      await store.stop()
    }
  })
}

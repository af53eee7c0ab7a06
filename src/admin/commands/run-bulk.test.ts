import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { notDone } from '../../ledger/core/verdict.ts'
import { createLedger } from '../../ledger/ledger.ts'
import { freshStore } from '../../ledger/stores/sqlite/test-store.ts'
import { defineRun } from '../../runs/definition.ts'
import { createEngine } from '../../runs/engine.ts'
import { until } from '../../testing/until.ts'
import { createAdmin } from '../core/admin.ts'
import { BadArguments, CommandRefused } from './refusal.ts'
import { createCommands } from './run.ts'

const caller = { role: 'operator', actor: { by: 'ada', via: 'test' } } as const
const HOUR_MS = 3_600_000

/** Two runs of `pay` that failed, one that waits for its next attempt, and a `nap` that sleeps. */
async function openRuns(context: TestContext) {
  const store = freshStore(context)
  const ledger = createLedger({ store, background: false })
  let isBroken = true
  const pay = defineRun('pay', async (run, input: { readonly attempts: number }) => {
    const retry = { attempts: input.attempts, backoff: 'fixed', baseMs: HOUR_MS } as const
    return await run.step('charge', { retry }, async () => {
      if (isBroken) throw notDone(new Error('the bank is away'))
      return 'paid'
    })
  })
  const nap = defineRun('nap', (run) => run.sleep('rest', HOUR_MS))
  const engine = await createEngine({ ledger, runs: [pay, nap] })
  for (const runId of ['a', 'b']) await engine.start(pay, { runId, input: { attempts: 1 } })
  await engine.start(pay, { runId: 'waiting', input: { attempts: 2 } })
  await engine.start(nap, { runId: 'nap', input: null })
  const states = async () => {
    const { runs } = await engine.list({})
    return Object.fromEntries(runs.map(({ runId, state }) => [runId, state]))
  }
  const is = (wanted: Readonly<Record<string, string>>) =>
    until('the runs have come so far', states, (found) =>
      Object.entries(wanted).every(([runId, state]) => found[runId] === state),
    )
  await is({ a: 'failed', b: 'failed', waiting: 'sleeping', nap: 'sleeping' })
  const admin = createAdmin({ store, ledger })
  const fix = () => {
    isBroken = false
  }
  const stop = async () => {
    await engine.stop()
    await ledger.stop()
  }
  return { commands: createCommands({ admin }), admin, is, states, fix, [Symbol.asyncDispose]: stop }
}

test('many runs are previewed, resumed, retried and cancelled by one command, each in the audit', async (context) => {
  await using opened = await openRuns(context)
  const { commands, admin, is, states, fix } = opened
  const results = ({ rows }: { readonly rows: readonly { readonly runId: string; readonly result: string }[] }) =>
    Object.fromEntries(rows.map(({ runId, result }) => [runId, result]))
  const preview = await commands.run('runs.resume', { definition: 'pay', preview: true }, { ...caller, role: 'viewer' })
  assert.deepEqual(results(preview), { a: 'would_change', b: 'would_change', waiting: 'skipped' })
  assert.deepEqual((await states())['a'], 'failed', 'a preview changes nothing')

  fix()
  const resumed = await commands.run('runs.resume', { state: 'failed', definition: 'pay' }, caller)
  assert.deepEqual(results(resumed), { a: 'changed', b: 'changed' })
  await is({ a: 'succeeded', b: 'succeeded' })
  const retried = await commands.run('runs.retry', { state: 'sleeping' }, caller)
  assert.deepEqual(results(retried), { waiting: 'changed', nap: 'refused' })
  await is({ waiting: 'succeeded' })
  const cancelled = await commands.run('runs.cancel', { runIds: ['nap', 'a', 'nap'] }, caller)
  assert.deepEqual(results(cancelled), { nap: 'changed', a: 'skipped' })
  await is({ nap: 'cancelled' })

  const audit = (await admin.audit?.list({}))?.rows.map(({ what, target, result }) => `${what} ${target} ${result}`)
  assert.deepEqual(audit?.slice(0, 2), ['run.cancel {"runId":"nap"} done', 'runs.cancel {"runs":1} done'])
  assert.ok(audit?.includes('run.retry {"runId":"nap"} refused'), String(audit))
})

test('a bulk action needs to know which runs, and asks before it begins', async (context) => {
  await using opened = await openRuns(context)
  const { commands, states } = opened
  await assert.rejects(commands.run('runs.cancel', {}, caller), BadArguments)
  await assert.rejects(commands.run('runs.cancel', { runIds: ['a'], state: 'failed' }, caller), BadArguments)
  await assert.rejects(commands.run('runs.cancel', { definition: 'none' }, caller), CommandRefused)
  await assert.rejects(
    commands.run('runs.cancel', { definition: 'pay' }, { ...caller, role: 'viewer' }),
    CommandRefused,
  )
  const asked: string[] = []
  const confirm = async (question: string) => {
    asked.push(question)
    throw new Error('declined')
  }
  await assert.rejects(commands.run('runs.cancel', { definition: 'pay' }, { ...caller, confirm }), /declined/)
  assert.deepEqual(asked, ['Cancel 1 run, and skip 2?'])
  assert.equal((await states())['waiting'], 'sleeping')
  const few = await commands.run('runs.cancel', { definition: 'pay', limit: 1, preview: true }, caller)
  assert.equal(few.more, true)
})

test('runs are found by the time in which they began', async (context) => {
  await using opened = await openRuns(context)
  const { commands } = opened
  const ids = async (given: Readonly<Record<string, unknown>>) =>
    (await commands.run('runs', given, caller)).rows.map(({ runId }) => runId).toSorted()
  const { rows } = await commands.run('runs', {}, caller)
  const last = Math.max(...rows.map(({ startedAt }) => startedAt))
  const isLast = ({ startedAt }: { readonly startedAt: number }) => startedAt === last
  const idsOf = (some: typeof rows) => some.map(({ runId }) => runId).toSorted()
  assert.deepEqual(await ids({ since: last }), idsOf(rows.filter(isLast)))
  assert.deepEqual(await ids({ before: last }), idsOf(rows.filter((row) => !isLast(row))))
  assert.deepEqual(await ids({ since: last, before: last }), [])
  assert.deepEqual(await ids({ before: new Date(last + 1).toISOString() }), idsOf(rows))
  await assert.rejects(ids({ before: 'yesterday' }), BadArguments)
})

import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLedger, HOUR, isOnceError, notDone } from 'onceonly'
import { type Channel, createEngine, defineRun } from 'onceonly/run'
import { sqliteStore } from 'onceonly/sqlite'
import { DELIVERY_OPERATION, deliveryOf } from '../../../service/messages/delivery.ts'
import { createResolve } from '../../../service/outreach/resolve.ts'
import { createMessageChannel, type MessagePlan } from '../../../service/outreach/send.ts'
import { until } from '../../../src/testing/until.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import { openDelivery, sent } from '../../support/service/messages/delivery.ts'

const plan: MessagePlan = { type: 'email', workspaceId: 'w', leadId: 'l', to: 'a@b.c', subject: null, message: 'Hi' }

/** One run with one message. Its first attempt is put off for an hour, and what came of the second is unknown. */
async function openRun() {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-resolve-'))
  const store = sqliteStore(join(folder, 'runs.db'))
  const channel: Channel<MessagePlan, null> = {
    name: 'messages',
    offer: { kind: 'correlate' },
    async send(_plan, { attemptNumber }) {
      if (attemptNumber === 1) throw notDone(new Error('Not now'), { retryAfterMs: HOUR })
      throw new Error('Connection closed')
    },
    verify: async () => ({ kind: 'unknown' }),
  }
  const body = defineRun('one-message', async (run) => run.step('mail', { channel }, () => plan))
  const engine = await createEngine({ ledger: quietLedger(store), runs: [body] })
  await engine.start(body, { runId: 'r', input: null })
  const stepNow = async () => (await engine.get('r')).steps[0]
  const untilStep = (state: string) =>
    until(
      `the step is ${state}`,
      stepNow,
      (step) => step?.state === state && (state !== 'retrying' || step.failures.length > 0),
    )
  const settled: string[] = []
  const messages = {
    async settle(_plan: MessagePlan, key: string) {
      settled.push(key)
      return true
    },
  }
  return {
    engine,
    messages,
    settled,
    stepNow,
    untilStep,
    async [Symbol.asyncDispose]() {
      await engine.stop()
      await store.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

test('a step that becomes unknown after its operator looked is not resolved without its message', async () => {
  await using world = await openRun()
  const { engine, messages, settled, untilStep } = world
  const key = (await untilStep('retrying'))?.key ?? ''
  let looks = 0
  const behind = {
    resolve: engine.resolve.bind(engine),
    /** Answers the first time what was seen, when it is not true any more. */
    async get(runId: string) {
      const seen = await engine.get(runId)
      if (looks++ > 0) return seen
      await engine.retry(runId)
      await untilStep('unknown')
      return seen
    },
  }
  const early = createResolve({ engine: behind, messages })
  await assert.rejects(early('r', key, { kind: 'failed' }), (error) => isOnceError(error, 'not_resolvable'))
  assert.deepEqual([(await world.stepNow())?.state, settled], ['unknown', []])

  await createResolve({ engine, messages })('r', key, { kind: 'failed', error: 'The address is wrong' })
  assert.deepEqual([(await world.stepNow())?.state, settled], ['failed', [key]])
})

type Parts = Parameters<typeof createMessageChannel>[0]

/** A message of a step that says 'sending', and the messages system as a run uses it. */
async function openSending(provider: Parameters<typeof openDelivery>[0]) {
  const world = await openDelivery(provider)
  const { base, delivery } = world
  await base.sql.query(`update messages set status = 'sending', key_claim = 'k'`)
  const unused = { sender: {}, channels: {} } as Pick<Parts, 'sender' | 'channels'>
  const { settle } = createMessageChannel({ base, delivery, ...unused })
  const fails = () => settle({ ...plan, workspaceId: 'w' }, 'k', { kind: 'failed', error: 'The address is wrong' })
  return Object.assign(world, { fails })
}

test('a message that is under way stays with its sender; when that one is dead, it is resolved at once', async () => {
  await using world = await openSending(() => assert.fail('nothing is sent'))
  const { base, row, fails, stateOf } = world
  const sender = createLedger({ store: base.store, background: false })
  const { operation: _, ...who } = deliveryOf(row)
  const claimed = await sender.operation({ name: DELIVERY_OPERATION, effect: 'external' }).claim(who, null)
  assert.equal(claimed.kind, 'first_attempt')
  await assert.rejects(fails(), (error) => isOnceError(error, 'not_resolvable'))
  assert.equal((await stateOf()).status, 'sending')
  await sender.stop()
  await base.advance(HOUR)
  assert.equal(await fails(), true)
  const { status, error } = await stateOf()
  assert.deepEqual([status, error], ['failed', 'The address is wrong'])
})

test('a message that turns out to be sent is not resolved as failed, nor is its step', async () => {
  const answers = [{ kind: 'not_now', error: 'Come back later', code: 'busy' } as const, sent]
  await using world = await openSending(async () => answers.shift() ?? assert.fail('it is sent twice'))
  const { base, delivery, row, fails, stateOf } = world
  assert.equal((await delivery.deliver(row)).status, 'queued')
  // As a process leaves it that died before it wrote so.
  await base.sql.query(`update messages set status = 'sending'`)
  await base.advance(HOUR)
  await assert.rejects(fails(), (error) => isOnceError(error, 'not_resolvable'))
  assert.equal((await stateOf()).status, 'sent')
})

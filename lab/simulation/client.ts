import type { CallOptions } from '../../src/ledger/begin.ts'
import type { Lease } from '../../src/ledger/claim.ts'
import { canonicalValue } from '../../src/ledger/core/canonical.ts'
import { decodeValue } from '../../src/ledger/core/codec.ts'
import { fingerprintOf } from '../../src/ledger/core/digest.ts'
import { isOnceError } from '../../src/ledger/core/errors.ts'
import type { Failure } from '../../src/ledger/core/verdict.ts'
import type { SettleWord } from '../../src/ledger/granted.ts'
import { failed, succeeded } from '../../src/ledger/granted.ts'
import type { Execution } from '../../src/ledger/present.ts'
import type { Call } from './effect.ts'
import { leasedEffect, transactionEffect } from './effect.ts'
import type { Host } from './host.ts'
import type { ClientPlan } from './scenario.ts'
import type { World } from './world.ts'
import { nap } from './world.ts'

/** The reply of one call to its client. */
export type Reply =
  | { readonly kind: 'value'; readonly value: unknown; readonly how: string }
  | { readonly kind: 'failure'; readonly failure: Failure }
  | { readonly kind: 'refused'; readonly code: string; readonly retryAfterMs: number | null }
  /** No answer came in time, or the client hung up. */
  | { readonly kind: 'silence' }
  /** An error of the effect itself: a transaction that was rolled back. */
  | { readonly kind: 'thrown' }

interface Try {
  readonly name: string
  readonly host: Host
  readonly tries: number
}

/** A client that always hangs up would never get an answer. */
const HANG_UPS = 3

const BACKOFF_MOST_MS = 30_000

const finalCodes = new Set(['key_reused', 'key_expired', 'outcome_not_stored', 'effect_failed'])

/** A client asks until it has a final answer, from whichever process is up, and keeps its key. */
export async function runClient(world: World, plan: ClientPlan, up: () => Host | null): Promise<Reply> {
  const { simulation, random, trace } = world
  await simulation.after(plan.startMs)
  for (let tries = 1; ; tries++) {
    const host = up()
    if (host === null) {
      await simulation.after(random.below(1_000))
      continue
    }
    const name = `${plan.name}.${tries}`
    const reply = await ask(world, plan, { name, host, tries })
    trace.note(`client ${name} hears ${describe(reply)}`)
    if (isFinal(plan, reply)) return reply
    const asked = reply.kind === 'refused' ? (reply.retryAfterMs ?? 0) : 0
    await simulation.after(asked + random.below(Math.min(200 * 2 ** tries, BACKOFF_MOST_MS)))
  }
}

function isFinal(plan: ClientPlan, reply: Reply): boolean {
  if (reply.kind === 'value' || reply.kind === 'failure') return true
  if (reply.kind !== 'refused') return false
  return finalCodes.has(reply.code) || (reply.code === 'outcome_unknown' && !plan.persistent)
}

function describe(reply: Reply): string {
  switch (reply.kind) {
    case 'value':
      return `${reply.how} ${JSON.stringify(reply.value)}`
    case 'failure':
      return `failure ${reply.failure.message}`
    case 'refused':
      return `${reply.code}, again after ${reply.retryAfterMs}`
    case 'silence':
    case 'thrown':
      return reply.kind
  }
}

/** One call. The client may leave before its answer comes; the answer is examined all the same. */
async function ask(world: World, plan: ClientPlan, { name, host, tries }: Try): Promise<Reply> {
  const { simulation, trace, tally } = world
  const hangUp = new AbortController()
  const silence = Promise.withResolvers<Reply>()
  const patience = simulation.timer(plan.patienceMs, () => silence.resolve({ kind: 'silence' }))
  const leave =
    plan.hangUpMs === null || tries > HANG_UPS
      ? null
      : simulation.timer(plan.hangUpMs, () => {
          if (!host.process.crashed) hangUp.abort()
        })
  trace.note(`client ${name} asks ${host.name} for ${plan.command.name}, payload ${plan.payload}`)
  const answered = receive(world, plan, { name, host, tries }, hangUp.signal).then((reply) => {
    leave?.cancel()
    const key = reply.kind === 'refused' ? reply.code : reply.kind
    tally.answers[key] = (tally.answers[key] ?? 0) + 1
    return reply
  })
  const reply = await Promise.race([answered, silence.promise])
  patience.cancel()
  return reply
}

/** The call arrives in the process: not before it wakes, if it stands still. */
async function receive(world: World, plan: ClientPlan, { name, host }: Try, signal: AbortSignal): Promise<Reply> {
  const { simulation, random, witness } = world
  await nap(host.process.runtime, 1 + random.below(5))
  const byHand = !host.transactions.has(plan.command.operation.name) && random.chance(0.15)
  const life = witness.lifeOf(plan.command)
  const beganMs = simulation.now()
  const twins = [...host.calls].filter((other) => other.life === life)
  const sinceMs = Math.min(beganMs, ...twins.map((other) => other.sinceMs))
  const call: Call = { name, life, host, beganMs, sinceMs, joins: !byHand }
  host.calls.add(call)
  const reply = await invoke(world, plan, call, signal)
  host.calls.delete(call)
  examine(world, plan, call, reply)
  return reply
}

function examine(world: World, plan: ClientPlan, { life, host, sinceMs }: Call, reply: Reply): void {
  if (reply.kind === 'refused' && reply.code === 'outcome_not_stored') {
    world.trace.fail('resultsAreKept', `${life.command.name}: a result that can be stored was not`)
  }
  if (reply.kind !== 'value' && reply.kind !== 'failure') return
  // Recording failed for a while: this process knows the outcome, and the store not yet, or never.
  if (world.unrecorded.has(`${host.name} ${life.command.name}`)) return
  if (reply.kind === 'value' && reply.how === 'tombstone') return
  const behind = (id: string) => world.things.get(id)
  world.witness.answer({
    life,
    fingerprint: fingerprintOfPayload(plan.payload),
    calledMs: sinceMs,
    reported: reply,
    behind,
  })
}

async function invoke(world: World, plan: ClientPlan, call: Call, signal: AbortSignal): Promise<Reply> {
  const { random } = world
  const { command, payload } = plan
  const { operations, transactions } = call.host
  const options: CallOptions = plan.hangUpMs === null ? {} : { signal }
  try {
    const transaction = transactions.get(command.operation.name)
    if (transaction !== undefined) {
      return replyOf(
        await transaction.execute(command.parts, payload, (work) => transactionEffect(world, call, work), options),
      )
    }
    const operation = operations.get(command.operation.name)
    if (operation === undefined) throw new Error(`no operation ${command.operation.name}`)
    if (!call.joins) return await claimByHand(world, plan, call)
    if (random.chance(0.3)) {
      const run = operation.run(command.parts, payload, (attempt) => leasedEffect(world, call, attempt), options)
      return { kind: 'value', value: await run, how: 'run' }
    }
    return replyOf(
      await operation.execute(command.parts, payload, (attempt) => leasedEffect(world, call, attempt), options),
    )
  } catch (error) {
    return replyToError(error)
  }
}

function fingerprintOfPayload(payload: number): string {
  return fingerprintOf(canonicalValue(payload), 1)
}

function replyOf(execution: Execution<unknown>): Reply {
  switch (execution.kind) {
    case 'executed':
    case 'replayed':
    case 'joined':
      return { kind: 'value', value: execution.value, how: execution.kind }
    case 'failed':
      return { kind: 'failure', failure: execution.failure }
    case 'refused':
      return replyToError(execution.error)
  }
}

function replyToError(error: unknown): Reply {
  if (isOnceError(error)) {
    if (error.code === 'effect_failed') return { kind: 'failure', failure: error.details['failure'] as Failure }
    return { kind: 'refused', code: error.code, retryAfterMs: error.retryAfterMs }
  }
  return error instanceof DOMException ? { kind: 'silence' } : { kind: 'thrown' }
}

/** Uses the low-level calls: claims, perhaps only reserves, runs the effect and settles explicitly. */
async function claimByHand(world: World, plan: ClientPlan, call: Call): Promise<Reply> {
  const { random } = world
  const { command, payload } = plan
  const operation = call.host.operations.get(command.operation.name)
  if (operation === undefined) throw new Error(`no operation ${command.operation.name}`)
  const claimed = await operation.claim(command.parts, payload, { reserve: random.chance(0.5) })
  switch (claimed.kind) {
    case 'first_attempt':
    case 'reclaimed':
      return holdLease(world, call, claimed.lease)
    case 'replay_success':
    case 'replay_failure': {
      const { data, kept } = claimed.outcome
      const read = data === null ? undefined : decodeValue(data)
      if (claimed.kind === 'replay_failure') return { kind: 'failure', failure: read as Failure }
      // A bare claim does not rebuild what a pointer names, so there may be nothing to compare.
      return { kind: 'value', value: read, how: kept === 'response' ? 'claim' : 'tombstone' }
    }
    case 'in_progress':
    case 'retry_later':
      return { kind: 'refused', code: claimed.kind, retryAfterMs: claimed.retryAfterMs }
    case 'key_reused':
    case 'outcome_unknown':
    case 'key_expired':
    case 'identity_collision':
      return { kind: 'refused', code: claimed.kind, retryAfterMs: null }
  }
}

async function holdLease(world: World, call: Call, lease: Lease): Promise<Reply> {
  const { random } = world
  if (random.chance(0.1)) {
    await lease.release()
    return { kind: 'refused', code: 'given_back', retryAfterMs: 0 }
  }
  // Abandons the claim: the heartbeats continue until the longest duration, and then the policy decides.
  if (world.stormy && random.chance(0.02)) return { kind: 'silence' }
  await lease.start()
  let word: SettleWord
  let reply: Reply
  try {
    const value = await leasedEffect(world, call, lease)
    word = succeeded(value)
    reply = { kind: 'value', value, how: 'settled' }
  } catch (thrown) {
    word = wordOf(thrown)
    reply = { kind: 'thrown' }
  }
  await lease.settle(word)
  return reply
}

function wordOf(thrown: unknown): SettleWord {
  if (typeof thrown !== 'object' || thrown === null || !('verdict' in thrown)) return { kind: 'unknown', error: thrown }
  const { verdict, error } = thrown as { verdict: string; error: unknown }
  return verdict === 'final' ? failed(error) : { kind: 'not_done', error }
}

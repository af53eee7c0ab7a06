import { appendFileSync } from 'node:fs'
import type { EffectContext } from 'onceonly'
import { createLedger, isOnceError } from 'onceonly'
import type { Address } from '../../support/place.ts'
import { openStore, who } from '../../support/place.ts'
import { listen, readTask, report } from './member.ts'

/** A worker that is stopped by SIGSTOP inside its effect, and proceeds when it is resumed. */
export interface PausedTask {
  readonly address: Address
  readonly effect: 'external' | 'repeatable'
  readonly key: string
  readonly effects: string
}

/** What it found when it woke up. */
export interface Woken {
  readonly kind: 'woken'
  readonly derive: string
  readonly attach: string
  readonly aborted: boolean
}

export interface Answered {
  readonly kind: 'answered'
  readonly how: string
}

/** The pause must outlast it in real time, and a busy machine must not. */
export const LEASE_MS = 2_000

export const pausable = (effect: PausedTask['effect']) =>
  ({ name: `paused.${effect}`, effect, leaseMs: LEASE_MS, whileRunning: 'conflict' }) as const

async function main(task: PausedTask): Promise<void> {
  const orders = listen()
  const { store } = openStore(task.address)
  const once = createLedger({ store, background: false })
  const operation = once.operation(pausable(task.effect))
  const answer = await operation.execute(who(task.key), 1, async (attempt) => {
    // Half of a long effect: whatever needs the lease from here on must be refused.
    appendFileSync(task.effects, `${task.key} ${attempt.effectKey}\n`)
    report({ kind: 'inside' })
    await orders.next()
    report(await found(attempt))
    return 'late'
  })
  report<Answered>({ kind: 'answered', how: answer.kind === 'refused' ? answer.error.code : answer.kind })
  await once.stop()
  process.exit(0)
}

async function found(attempt: EffectContext): Promise<Woken> {
  return {
    kind: 'woken',
    aborted: attempt.signal.aborted,
    derive: codeOf(() => attempt.derive('mail')),
    attach: await attempt.attach({ type: 'mail', id: '1' }).then(() => 'given', codeOfError),
  }
}

function codeOf(ask: () => string): string {
  try {
    ask()
    return 'given'
  } catch (error) {
    return codeOfError(error)
  }
}

function codeOfError(error: unknown): string {
  return isOnceError(error) ? error.code : String(error)
}

if (import.meta.main) await main(readTask<PausedTask>())

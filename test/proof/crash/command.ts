import { appendFileSync } from 'node:fs'
import type { EffectContext, Ledger, SqlTx } from 'onceonly'
import { createLedger, MINUTE, succeeded } from 'onceonly'
import type { Address } from '../../support/place.ts'
import { openStore, who } from '../../support/place.ts'
import { readTask, report } from './member.ts'
import type { Death, Point } from './points.ts'
import { createDeath, mortal } from './points.ts'

/** A process that runs one command through the public API, and dies at the point that its task names. */
export interface CommandTask {
  readonly address: Address
  readonly effect: EffectKind
  readonly key: string
  readonly point: Point
  readonly delayUs: number
  /** Where an effect outside of the store leaves its trace. */
  readonly effects: string
}

/** `reserved` is external, claimed ahead of its execution. */
export const effectKinds = ['external', 'repeatable', 'transaction', 'reserved'] as const
export type EffectKind = (typeof effectKinds)[number]

/** Longer than a busy machine takes to kill a process in every case and to ask after each. */
export const LEASE_MS = 5 * MINUTE

/** The same in every process that runs it. */
export function define(once: Ledger<SqlTx>, effect: EffectKind) {
  const policy = { whileRunning: 'conflict', name: `crash.${effect}` } as const
  return {
    leased:
      effect === 'transaction' ? null : once.operation({ ...policy, effect: leasedKind(effect), leaseMs: LEASE_MS }),
    transactional: effect === 'transaction' ? once.operation({ ...policy, effect }) : null,
  }
}

function leasedKind(effect: Exclude<EffectKind, 'transaction'>): 'external' | 'repeatable' {
  return effect === 'repeatable' ? 'repeatable' : 'external'
}

async function main(task: CommandTask): Promise<void> {
  const death = await createDeath(task.point, task.delayUs)
  const { store, close } = openStore(task.address, task.key)
  const once = createLedger({ store: mortal(store, death), background: false })
  await run(once, task, death)
  report({ kind: 'survived' })
  await once.stop()
  await close()
}

async function run(once: Ledger<SqlTx>, task: CommandTask, death: Death): Promise<void> {
  const { leased, transactional } = define(once, task.effect)
  const external = (attempt: EffectContext) => {
    death.at('effect_before')
    appendFileSync(task.effects, `${task.key} ${attempt.effectKey}\n`)
    death.at('effect_after')
    return `by ${process.pid}`
  }
  if (transactional !== null) {
    await transactional.run(who(task.key), task.effect, async ({ tx }) => {
      death.at('effect_before')
      await tx.query('insert into business (key, value) values (?, ?)', [task.key, `by ${process.pid}`])
      death.at('effect_after')
      return `by ${process.pid}`
    })
  } else if (task.effect === 'reserved') {
    const claimed = await leased?.claim(who(task.key), task.effect, { reserve: true })
    if (claimed?.kind !== 'first_attempt') throw new Error(`not reserved: ${claimed?.kind}`)
    await claimed.lease.start()
    await claimed.lease.settle(succeeded(external(claimed.lease)))
  } else {
    await leased?.run(who(task.key), task.effect, external)
  }
}

if (import.meta.main) await main(readTask<CommandTask>())

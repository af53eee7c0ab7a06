import { appendFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Execution, Ledger, RecordView, SqlTx } from 'onceonly'
import { createLedger } from 'onceonly'
import type { Ended } from '../../support/crew.ts'
import type { CrashStore, Place } from '../../support/place.ts'
import { who } from '../../support/place.ts'
import type { CommandTask, EffectKind } from './command.ts'
import { define, effectKinds } from './command.ts'

/** Other processes' ledgers, which find what a crashed one left behind. */
export interface Successors {
  /** So many identical commands at once, spread over the ledgers. Refusals are reported by their code. */
  ask(effect: EffectKind, key: string, times: number): Promise<readonly Answer[]>
  get(effect: EffectKind, key: string): Promise<RecordView | null>
  end(): Promise<void>
}

export interface Answer {
  readonly kind: string
  readonly value: string | null
}

export function createSuccessors(place: Place): Successors {
  const stores = [place.store, place.another()]
  const ledgers = stores.map((store) => createLedger<CrashStore>({ store, background: false }))
  const askers = ledgers.map((once) => askerOf(once, place))
  return {
    async ask(effect, key, times) {
      const asked = Array.from({ length: times }, async (_, n) =>
        answerOf(await askers[n % askers.length]?.(effect, key)),
      )
      return await Promise.all(asked)
    },
    get: (effect, key) => (ledgers[0] as Ledger<SqlTx>).get({ ...who(key), operation: `crash.${effect}` }),
    async end() {
      for (const once of ledgers) await once.stop()
    },
  }
}

function answerOf(execution: Execution<string> | undefined): Answer {
  if (execution === undefined) throw new Error('no command was sent')
  if (execution.kind === 'refused' || execution.kind === 'failed') {
    return { kind: execution.error.code, value: null }
  }
  return { kind: execution.kind, value: execution.value }
}

function askerOf(once: Ledger<SqlTx>, place: Place): (effect: EffectKind, key: string) => Promise<Execution<string>> {
  const operations = new Map(effectKinds.map((effect) => [effect, define(once, effect)]))
  const effects = join(place.folder, 'effects')
  return async (effect, key) => {
    const operation = operations.get(effect)
    if (operation?.transactional) {
      return operation.transactional.execute(who(key), effect, async ({ tx }) => {
        await tx.query('insert into business (key, value) values (?, ?)', [key, 'successor'])
        return 'successor'
      })
    }
    if (!operation?.leased) throw new Error(`no operation for ${effect}`)
    return operation.leased.execute(who(key), effect, ({ effectKey }) => {
      appendFileSync(effects, `${key} ${effectKey}\n`)
      return 'successor'
    })
  }
}

/** How many effects a key has had, wherever they leave their trace, and under which effect keys. */
export interface Trace {
  count(key: string): number
  effectKeys(key: string): ReadonlySet<string>
}

export async function traceOf(place: Place): Promise<Trace> {
  const text = await readFile(join(place.folder, 'effects'), 'utf8').catch(() => '')
  const outside = text.split('\n').map((line) => line.split(' ') as [string, string?])
  const inside = (await place.business()).map(({ key }) => [key] as [string, string?])
  const of = (key: string) => [...outside, ...inside].filter(([each]) => each === key)
  return {
    count: (key) => of(key).length,
    effectKeys: (key) => new Set(of(key).flatMap(([, effectKey]) => (effectKey === undefined ? [] : [effectKey]))),
  }
}

/** Runs one command in a process of its own until that process dies, or has survived. */
export async function runToDeath(
  place: Place,
  task: Omit<CommandTask, 'address' | 'effects'>,
): Promise<Ended & { readonly reached: boolean }> {
  const { address, folder, crew } = place
  const whole: CommandTask = { ...task, address, effects: join(folder, 'effects') }
  const child = crew.start({ file: import.meta.resolve('./command.ts'), task: whole })
  const end = await child.ended
  await place.forgotten(task.key)
  return { ...end, reached: child.heardSoFar('dying').length === 1 }
}

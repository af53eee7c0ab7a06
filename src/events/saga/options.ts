import { OnceError } from '../../ledger/core/errors.ts'
import { limits } from '../../ledger/core/limits.ts'
import { checkOptions, kindOf } from '../../ledger/core/option-names.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { InboxOptions } from '../inbox/options.ts'
import type { SagaDefinition, Specs } from './definition.ts'
import type { SagaListener } from './events.ts'
import { sagaDefaults } from './limits.ts'

export interface SagaOptions<Data, Events extends Specs, State extends string, Terminal extends string> {
  /** What `defineSaga` returned. */
  readonly definition: SagaDefinition<Data, Events, State, Terminal>
  /** On SQLite or PostgreSQL; with an outbox, when handlers publish or send. */
  readonly ledger: Ledger<unknown>
  /**
   * Of the inbox that its messages go through: how long they are remembered, how often they may fail (once).
   * @default the inbox's own, with `maxFailures: 1`
   */
  readonly inbox?: Pick<
    InboxOptions<SqlTx>,
    'windowMs' | 'effectMs' | 'maxFailures' | 'maxUnfinished' | 'backoff' | 'on'
  >
  /**
   * Waits between tries when another process changed the same instance. None at all: the broker waits at once.
   * @default [100, 200, 500]
   */
  readonly conflictDelaysMs?: readonly number[]
  /** How long a message stays away when all of these tries met a conflict. @default 1_000 */
  readonly laterMs?: number
  /**
   * Events of one instance one after the other in this process; on by default. It saves work, nothing else.
   * @default true
   */
  readonly partition?: boolean
  /** Delivers timeouts and sweeps by itself; on by default. @default true */
  readonly background?: boolean
  /** Timeouts are delivered when they are due; it looks for them at least this often all the same. @default 30_000 */
  readonly dueEveryMs?: number
  /** Called with every event of its instances. @default none */
  readonly on?: SagaListener
  /** Time, randomness and scheduling; tests give their own. @default the system's */
  readonly runtime?: Runtime
}

export interface Settings {
  readonly conflictDelaysMs: readonly number[]
  readonly laterMs: number
  readonly dueEveryMs: number
}

export function settingsOf(options: Partial<Settings>): Settings {
  const { conflictDelaysMs, laterMs, dueEveryMs } = { ...sagaDefaults, ...withoutUndefined(options) }
  for (const ms of [...conflictDelaysMs, laterMs, dueEveryMs]) {
    if (Number.isSafeInteger(ms) && ms >= 0 && ms <= limits.waitMaxMs) continue
    throw new OnceError('bad_option', `A saga waits whole milliseconds, at most ${limits.waitMaxMs}, and not ${ms}.`)
  }
  return { conflictDelaysMs, laterMs, dueEveryMs }
}

function withoutUndefined(options: Partial<Settings>): Partial<Settings> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}

const sagaOptions = {
  definition: true,
  ledger: true,
  inbox: true,
  conflictDelaysMs: true,
  laterMs: true,
  partition: true,
  background: true,
  dueEveryMs: true,
  on: true,
  runtime: true,
} satisfies Record<keyof SagaOptions<unknown, Specs, string, string>, true>

export function checkSagaOptions(options: Readonly<Partial<Record<keyof typeof sagaOptions, unknown>>>): void {
  checkOptions('createSaga', options, sagaOptions)
  const { definition } = options
  if (Array.isArray((definition as { readonly states?: unknown } | undefined)?.states)) return
  const text = `The \`definition\` of createSaga is ${kindOf(definition)}. Give what defineSaga returned.`
  throw new OnceError('bad_option', text, { details: { option: 'definition' } })
}

import { OnceError } from '../../ledger/core/errors.ts'
import { exceedsBytes } from '../../ledger/core/identity.ts'
import { limits } from '../../ledger/core/limits.ts'
import { checkOptions } from '../../ledger/core/option-names.ts'
import type { OrmTransactions } from '../../ledger/store/orm.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import type { Cell, EnterMove, EnterStay, SagaDefinition, Spec, Specs, StartCell } from './definition.ts'
import { sagaDefaults, sagaLimits } from './limits.ts'

/** The state of an instance that has not begun. */
export const INITIAL = 'initial'

export type AnyCell = Cell<unknown, unknown, string>
export type AnyEnter = EnterStay<unknown> | EnterMove<unknown, string>

/** A definition without its types, checked, for those who run it. */
export interface Machine {
  readonly name: string
  readonly states: readonly string[]
  readonly terminal: readonly string[]
  readonly failed: readonly string[]
  readonly events: ReadonlyMap<string, Spec<unknown>>
  readonly oneShot: boolean
  readonly keepMs: number
  readonly deferMs: number
  /** The ORM of the ledger, for handlers that get its handle; null for `tx.query`. */
  readonly transactions: OrmTransactions<unknown> | null
  data(id: string): unknown
  cell(state: string, event: string): AnyCell
  enter(state: string): AnyEnter | null
  isTerminal(state: string): boolean
}

/**
 * Declares a saga. What the types refuse is refused here too, for those who come without types.
 *
 * @example
 * ```ts
 * import { defineSaga, event, ignore } from 'onceonly/saga'
 *
 * const parcels = defineSaga({
 *   name: 'parcels',
 *   events: {
 *     Packed: event<{ parcel: string }>({ correlate: ({ parcel }) => parcel }),
 *     Delivered: event<{ parcel: string }>({ correlate: ({ parcel }) => parcel }),
 *   },
 *   states: ['OnItsWay'],
 *   terminal: ['Done'],
 *   data: () => ({}),
 *   table: {
 *     initial: {
 *       Packed: { to: ['OnItsWay'], handle: (_data, _event, { transitionTo }) => transitionTo('OnItsWay') },
 *       Delivered: { ...ignore, because: 'there is no parcel' },
 *     },
 *     OnItsWay: {
 *       Packed: ignore,
 *       Delivered: { to: ['Done'], handle: (_data, _event, { transitionTo }) => transitionTo('Done') },
 *     },
 *   },
 * })
 * console.log(parcels.name)
 * ```
 */
export function defineSaga<
  Data,
  const Events extends Specs,
  const State extends string,
  const Terminal extends string,
  Tx = SqlTx,
>(definition: SagaDefinition<Data, Events, State, Terminal, Tx>): SagaDefinition<Data, Events, State, Terminal> {
  checkOptions('defineSaga', definition, definitionOptions)
  // Only its handlers know the type of their `tx`; that it is the one of the ledger is checked where both meet.
  const declared = definition as SagaDefinition<Data, Events, State, Terminal, never>
  machineOf(declared)
  return declared
}

const definitionOptions = {
  name: true,
  events: true,
  states: true,
  terminal: true,
  failed: true,
  data: true,
  table: true,
  onEnter: true,
  transactions: true,
  oneShot: true,
  keepMs: true,
  deferMs: true,
} satisfies Record<keyof Untyped, true>

/** Every definition has this shape, once its types are left out. */
interface Untyped {
  readonly name: string
  readonly events: Specs
  readonly states: readonly string[]
  readonly terminal: readonly string[]
  readonly failed?: readonly string[]
  readonly data: (id: string) => unknown
  readonly table: Readonly<Record<string, Readonly<Record<string, AnyCell | StartCell<unknown, unknown, string>>>>>
  readonly onEnter?: Readonly<Record<string, AnyEnter | undefined>>
  readonly transactions?: OrmTransactions<unknown>
  readonly oneShot?: boolean
  readonly keepMs?: number
  readonly deferMs?: number
}

export function machineOf<Data, Events extends Specs, State extends string, Terminal extends string>(
  definition: SagaDefinition<Data, Events, State, Terminal>,
): Machine {
  const untyped = definition as unknown as Untyped
  checkDefinition(untyped)
  const { name, states, terminal, failed = [], table, onEnter = {}, oneShot = false } = untyped
  const { keepMs = sagaDefaults.keepMs, deferMs = sagaDefaults.deferMs } = untyped
  const ends = new Set(terminal)
  return {
    name,
    states,
    terminal,
    failed,
    events: new Map(Object.entries(untyped.events)),
    oneShot,
    keepMs,
    deferMs,
    transactions: untyped.transactions ?? null,
    data: (id) => untyped.data(id),
    cell(state, event) {
      const cell = ownOf(ownOf(table, state), event)
      if (cell === undefined) throw refused(name, `has no state ${state} with the event ${event}`)
      return cell
    },
    enter: (state) => ownOf(onEnter, state) ?? null,
    isTerminal: (state) => ends.has(state),
  }
}

function ownOf<T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, name) ? record[name] : undefined
}

function checkDefinition(definition: Untyped): void {
  const { name, events, states, terminal, failed = [], table, onEnter = {}, keepMs, deferMs } = definition
  if (typeof name !== 'string' || name.trim() === '' || exceedsBytes(name, sagaLimits.nameBytes)) {
    throw new OnceError('bad_option', `A saga needs a name of at most ${sagaLimits.nameBytes} bytes.`)
  }
  const all = [...states, ...terminal]
  if (new Set([INITIAL, ...all]).size !== all.length + 1) {
    throw refused(name, `names a state twice, or calls one \`${INITIAL}\``)
  }
  const unended = failed.find((state) => !terminal.includes(state))
  if (unended !== undefined) throw refused(name, `has ${unended} in \`failed\`, which is not in \`terminal\``)
  for (const [option, ms] of Object.entries({ keepMs, deferMs })) {
    if (ms === undefined || (Number.isSafeInteger(ms) && ms > 0 && ms <= limits.longestMs)) continue
    throw refused(name, `needs a whole number of milliseconds as \`${option}\``)
  }
  checkTopics(name, events)
  checkTable(name, table, [INITIAL, ...states], Object.keys(events), new Set(all))
  for (const [state, enter] of Object.entries(onEnter)) {
    if (!all.includes(state)) throw refused(name, `has an onEnter for ${state}, which is no state`)
    if (typeof enter === 'object') checkTargets(name, enter.to, new Set(all), `onEnter of ${state}`)
    if (typeof enter === 'object' && terminal.includes(state)) throw refused(name, `leaves its terminal state ${state}`)
  }
}

function checkTopics(name: string, events: Specs): void {
  const topics = Object.entries(events).flatMap(([event, spec]) => topicsOf(event, spec))
  if (Object.keys(events).length === 0) throw refused(name, 'has no events')
  if (new Set(topics).size !== topics.length) throw refused(name, 'has two events under one topic')
}

export function topicsOf(event: string, spec: Spec<unknown>): readonly string[] {
  return spec.kind === 'timeout' ? [] : [spec.topic ?? event]
}

function checkTable(
  name: string,
  table: Untyped['table'],
  states: readonly string[],
  events: readonly string[],
  targets: ReadonlySet<string>,
): void {
  for (const state of Object.keys(table)) {
    if (!states.includes(state)) throw refused(name, `has a row for ${state}, which is no state that can be left`)
  }
  for (const state of states) {
    const row = ownOf(table, state)
    for (const event of events) {
      const cell = ownOf(row, event)
      if (cell === undefined) throw refused(name, `does not decide ${event} in ${state}`)
      if (typeof cell === 'function' && state === INITIAL) throw refused(name, `cannot stay ${INITIAL} on ${event}`)
      if (typeof cell === 'object' && 'to' in cell) checkTargets(name, cell.to, targets, `${event} in ${state}`)
    }
    const extra = Object.keys(row ?? {}).find((event) => !events.includes(event))
    if (extra !== undefined) throw refused(name, `decides ${extra} in ${state}, which is no event of it`)
  }
}

function checkTargets(name: string, to: readonly string[], targets: ReadonlySet<string>, where: string): void {
  if (to.length === 0) throw refused(name, `goes nowhere on ${where}`)
  const unknown = to.find((state) => !targets.has(state))
  if (unknown !== undefined) throw refused(name, `goes to ${unknown} on ${where}, which is no state`)
}

function refused(name: string, what: string): OnceError<'bad_option'> {
  return new OnceError('bad_option', `The saga ${name} ${what}.`)
}

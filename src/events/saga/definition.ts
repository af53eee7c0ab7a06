import type { OrmTransactions } from '../../ledger/store/orm.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'

/**
 * A saga as its author writes it: events, states, and one table that decides every pair of them. A missing pair does not
 * compile, so that every event is handled in every state.
 */

/** An event that comes as a message. */
export interface EventSpec<Body> {
  readonly kind: 'event'
  /** The topic it comes under; the name of the event, when left out. */
  readonly topic: string | null
  /** Throws when the body is none of this event: such a message is parked, because it never gets better. */
  parse(body: unknown): Body
  /** The id of the instance that it belongs to. */
  correlate(body: Body): string
}

/** An event that a saga schedules for itself; no message from outside can be one. */
export interface TimeoutSpec<Body> {
  readonly kind: 'timeout'
  parse(body: unknown): Body
}

export type Spec<Body> = EventSpec<Body> | TimeoutSpec<Body>
export type Specs = Readonly<Record<string, Spec<unknown>>>
export type BodyOf<S> = S extends { parse(body: unknown): infer Body } ? Body : never
export type TimeoutName<Events> = {
  [E in keyof Events]: Events[E] extends { readonly kind: 'timeout' } ? E : never
}[keyof Events] &
  string

/** An event of a saga that comes as a message; `correlate` finds its instance. */
export function event<Body>(spec: {
  readonly correlate: (body: Body) => string
  readonly parse?: (body: unknown) => Body
  readonly topic?: string
}): EventSpec<Body> {
  const { correlate, topic = null, parse = (body: unknown) => body as Body } = spec
  return { kind: 'event', topic, parse, correlate }
}

/** An event of a saga that comes when its time is over; handlers `schedule` it. */
export function timeout<Body = null>(spec: { readonly parse?: (body: unknown) => Body } = {}): TimeoutSpec<Body> {
  return { kind: 'timeout', parse: spec.parse ?? ((body) => body as Body) }
}

/** The event is taken, and nothing happens. */
export interface Ignore {
  readonly kind: 'ignore'
  readonly because?: string
}
/** The event is kept, and comes again after the next transition. */
export interface Defer {
  readonly kind: 'defer'
  readonly because?: string
}
/** The event must not come here: it fails, is counted, and ends among the dead letters. */
export interface SagaFault {
  readonly kind: 'fault'
  readonly because?: string
}
export type PlainCell = Ignore | Defer | SagaFault

/** In this state the event does nothing, as a duplicate that comes late. */
export const ignore: Ignore = { kind: 'ignore' }
/** In this state the event waits until the instance is in another one. */
export const defer: Defer = { kind: 'defer' }
/** In this state the event must not come: it fails and is parked as a dead letter. */
export const fault: SagaFault = { kind: 'fault' }

export interface SagaSendOptions {
  /**
   * Messages of one key keep their order. The id of the instance, when left out; null for no order at all.
   * @default the id of the instance
   */
  readonly key?: string | null
  /** Headers of the message. @default none */
  readonly headers?: Readonly<Record<string, string>>
}

export interface ScheduleOptions {
  /** How long from now, in milliseconds. */
  readonly afterMs: number
  /**
   * Several timeouts of one event need names of their own; the name of the event, when left out.
   * @default the name of the event
   */
  readonly name?: string
}

/** What a handler is given beside data and event. Nothing leaves before the new state is saved. */
export interface Tools<Events = Specs, Tx = SqlTx> {
  /** The id of the instance. */
  readonly id: string
  /** The state that the handler runs in. */
  readonly state: string
  /** The store's time. */
  readonly now: number
  /**
   * For business writes that commit with the new state, or not at all. The handle of your ORM where the definition has its
   * `transactions`.
   */
  readonly tx: Tx
  /** The same for every attempt at this message: pass it to other systems, so that they detect a repetition. */
  readonly effectKey: string
  derive(name: string): string
  /** Publishes an event to all subscribers. */
  publish(topic: string, body: unknown, options?: SagaSendOptions): void
  /** Sends a command to one receiver. It travels like a published event; the history distinguishes the two. */
  send(topic: string, body: unknown, options?: SagaSendOptions): void
  /** Replaces the timeout of that name, also one that is just being delivered. */
  schedule<E extends TimeoutName<Events>>(event: E, body: BodyOf<Events[E]>, options: ScheduleOptions): void
  unschedule(name: string): void
  /** For what is unexpected but harmless: reported to listeners, kept in the history. */
  warn(text: string): void
}

export interface MoveTools<To extends string, Events = Specs, Tx = SqlTx> extends Tools<Events, Tx> {
  /** At most once. It takes place when the handler has returned, and then `onEnter` of the new state runs. */
  transitionTo(state: To): void
}

/** Methods, so that a definition of certain types is also one of unknown types. */
interface Signatures<Data, Body, T> {
  handle(data: Data, event: Body, tools: T): void | Promise<void>
  enter(data: Data, tools: T): void | Promise<void>
}

/**
 * Changes the data and stays in its state. It runs inside the transaction and perhaps several times, so slow work and calls
 * to other systems belong in the receivers of the messages that it sends.
 */
export type Stay<Data, Body, Events = Specs, Tx = SqlTx> = Signatures<Data, Body, Tools<Events, Tx>>['handle']

/** May leave its state, for those that it names: so the diagram shows every arrow, and no arrow that is not there. */
export interface Move<Data, Body, To extends string, Events = Specs, Tx = SqlTx> {
  readonly to: readonly To[]
  readonly handle: Signatures<Data, Body, MoveTools<To, Events, Tx>>['handle']
}

export type EnterStay<Data, Events = Specs, Tx = SqlTx> = Signatures<Data, never, Tools<Events, Tx>>['enter']
export interface EnterMove<Data, To extends string, Events = Specs, Tx = SqlTx> {
  readonly to: readonly To[]
  readonly handle: Signatures<Data, never, MoveTools<To, Events, Tx>>['enter']
}

/** Before an instance exists there is no state to stay in: an event starts it, or is decided otherwise. */
export type StartCell<Data, Body, To extends string, Events = Specs, Tx = SqlTx> =
  | PlainCell
  | Move<Data, Body, To, Events, Tx>
export type Cell<Data, Body, To extends string, Events = Specs, Tx = SqlTx> =
  | StartCell<Data, Body, To, Events, Tx>
  | Stay<Data, Body, Events, Tx>

export type Table<Data, Events extends Specs, State extends string, Terminal extends string, Tx = SqlTx> = {
  readonly [S in State | 'initial']: {
    readonly [E in keyof Events]: S extends 'initial'
      ? StartCell<Data, BodyOf<Events[E]>, State | Terminal, Events, Tx>
      : Cell<Data, BodyOf<Events[E]>, State | Terminal, Events, Tx>
  }
}

/** A terminal state is never left. */
export type Entries<Data, Events extends Specs, State extends string, Terminal extends string, Tx = SqlTx> = {
  readonly [S in State]?: EnterStay<Data, Events, Tx> | EnterMove<Data, State | Terminal, Events, Tx>
} & { readonly [S in Terminal]?: EnterStay<Data, Events, Tx> }

export interface SagaDefinition<
  Data = unknown,
  Events extends Specs = Specs,
  State extends string = string,
  Terminal extends string = string,
  Tx = SqlTx,
> {
  /** Part of every stored row: changing it forgets every instance. */
  readonly name: string
  /** The events that the saga knows, each with `event` or `timeout`. */
  readonly events: Events
  /**
   * The same as its ledger has: then the `tx` of handlers is the handle of your ORM.
   * @default none: `tx` has `tx.query`
   */
  readonly transactions?: OrmTransactions<Tx>
  /** The states in which an instance waits for events. */
  readonly states: readonly State[]
  /** Here every event is ignored, and the instance is kept as a tombstone until `keepMs` has passed. */
  readonly terminal: readonly Terminal[]
  /** Terminal states that mean a failure, for operators to see. @default none */
  readonly failed?: readonly NoInfer<Terminal>[]
  /** The data of an instance that begins. It is stored with dates, sets and maps as they are. */
  readonly data: (id: string) => Data
  /** What every event does in every state: a move, or `ignore`, `defer` or `fault`. */
  readonly table: NoInfer<Table<Data, Events, State, Terminal, Tx>>
  /** What an instance does when it enters a state, whatever event led there. @default nothing */
  readonly onEnter?: NoInfer<Entries<Data, Events, State, Terminal, Tx>>
  /**
   * Ids are never used again: an event that would start an instance whose tombstone is gone is ignored.
   * @default false
   */
  readonly oneShot?: boolean
  /** How long a finished instance is remembered, so that late duplicates are ignored. @default 7 days */
  readonly keepMs?: number
  /** How long deferred events wait for an instance that has not begun. @default 7 days */
  readonly deferMs?: number
}

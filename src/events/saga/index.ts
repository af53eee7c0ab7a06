export type {
  BodyOf,
  Defer,
  EventSpec,
  Ignore,
  Move,
  MoveTools,
  SagaDefinition,
  SagaFault,
  SagaSendOptions,
  ScheduleOptions,
  Stay,
  TimeoutSpec,
  Tools,
} from './definition.ts'
export { defer, event, fault, ignore, timeout } from './definition.ts'
export type { Decided, Description } from './describe.ts'
export { describeSaga } from './describe.ts'
export type { SagaEvent, SagaListener } from './events.ts'
export type { Given, Rehearsal } from './given.ts'
export { given } from './given.ts'
export type { IgnoredWhy, SagaHistoryEntry } from './history.ts'
export { sagaDefaults, sagaLimits } from './limits.ts'
export { defineSaga } from './machine.ts'
export type { SagaOptions } from './options.ts'
export type { PendingView } from './pending.ts'
export type { Saga, SagaView } from './saga.ts'
export { createSaga } from './saga.ts'

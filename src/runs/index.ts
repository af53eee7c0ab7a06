export type { Channel, Offer } from './channel.ts'
export type {
  ChannelOptions,
  ChildOptions,
  PlainOptions,
  PlannedStep,
  Received,
  RetryPolicy,
  RunContext,
  TransactionOptions,
  VerifyOptions,
} from './context.ts'
export type { RunBody, RunDefinition, RunOptions } from './definition.ts'
export { defineRun } from './definition.ts'
export type { Difference } from './diff.ts'
export type { Engine, EngineOptions, EventPageOptions, RunHandle, StartOptions } from './engine.ts'
export { createEngine } from './engine.ts'
export type {
  AttemptFailure,
  Attributes,
  AttributeValue,
  EntryKind,
  EntryState,
  IfParentEnds,
  QueuePlace,
  RunState,
} from './entry.ts'
export type { ErasedRun } from './erase.ts'
export type { EventStreamOptions } from './event-stream.ts'
export { eventsResponse, sendEvents } from './event-stream.ts'
export type { RunEvent, StepState } from './events.ts'
export type { ForkOptions } from './forked.ts'
export type { FixtureSource, RunHistory } from './history.ts'
export { replayFixture } from './history.ts'
export type { FormFields, HttpChannelOptions, HttpPlan, HttpSent } from './http-channel.ts'
export { httpChannel } from './http-channel.ts'
export { stepKey } from './key.ts'
export type { RunPage, RunQuery } from './list.ts'
export type { Resolution, RunOperator } from './operate.ts'
export type { OutputPage, OutputQuery, RunOutput } from './outputs.ts'
export type { KeyLocation, ProviderProfile } from './providers.ts'
export { providers } from './providers.ts'
export type { EnqueueOptions, Queue, QueueOptions, QueueRate } from './queue.ts'
export { defineQueue } from './queue.ts'
export type { QueueOperator, QueueView } from './queue-operator.ts'
export type { Compared, Replay, ReplayOptions, ReplayStep } from './replay.ts'
export type { CatchUp, NextAfter, Overlap, RunScheduleOptions, Schedule } from './schedule.ts'
export { schedule } from './schedule.ts'
export type { ScheduleFailure, ScheduleOperator, ScheduleView } from './schedule-operator.ts'
export type { StepContext, TransactionStepContext, Verified } from './step-context.ts'
export type { RunView, StepView } from './view.ts'

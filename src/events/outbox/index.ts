export type { RelayEvent, RelayListener } from './events.ts'
export type {
  OutboxActionOptions,
  OutboxDeadLetter,
  OutboxDeadLetterFilter,
  OutboxDeadLetters,
  OutboxStatus,
} from './operate.ts'
export type { Outbox, OutboxOptions } from './outbox.ts'
export { createOutbox } from './outbox.ts'
export type { OutgoingMessage, Published, Publisher } from './port.ts'
export type { Relay, RelayOptions } from './relay.ts'
export { createRelay } from './relay.ts'

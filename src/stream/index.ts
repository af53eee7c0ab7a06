export type { CausalArrival, Caused } from './causal.ts'
export { CausalBuffer } from './causal.ts'
export { createStreamClient } from './client.ts'
export type { StreamReceiver } from './client-intake.ts'
export type { ClientStatus, RenewReason, StreamClient, StreamClientOptions } from './client-options.ts'
export type { Sent } from './client-outgoing.ts'
export type {
  ClientIdentity,
  ClientLink,
  ClientPlace,
  ClientPosition,
  ClientRecord,
  ClientTransport,
  LinkEvents,
  PendingSend,
} from './client-ports.ts'
export type { ClientRuntime } from './client-runtime.ts'
export type { Decoded } from './decode.ts'
export { decodeClientFrame, decodeServerFrame } from './decode.ts'
export type { Processed } from './dedup.ts'
export { ReceiveDedup } from './dedup.ts'
export type { DeliveryMode, DeliveryPlace } from './delivery.ts'
export { Delivery } from './delivery.ts'
export { isStreamName } from './fields.ts'
export type { HybridTime } from './hybrid.ts'
export { compareHybrid, HybridClock } from './hybrid.ts'
export { LamportClock } from './lamport.ts'
export { createMemoryPlace } from './memory-place.ts'
export type {
  IndexedDb,
  IndexedDbDatabase,
  IndexedDbOpening,
  IndexedDbPlaceOptions,
  IndexedDbRequest,
  IndexedDbTransaction,
} from './place-indexeddb.ts'
export { createIndexedDbPlace } from './place-indexeddb.ts'
export type { KeptPlace } from './place-on-shelf.ts'
export { covers, coversPlace, furthest, missingFrom } from './position.ts'
export type {
  AckFrame,
  AckResult,
  ClientFrame,
  CloseReason,
  Delivered,
  Entry,
  HelloFrame,
  LogPlace,
  MessageIdentity,
  NackReason,
  Position,
  ResetFrame,
  ResetReason,
  ResumedFrame,
  ResumeFrame,
  SendFrame,
  ServerFrame,
  WelcomeFrame,
} from './protocol.ts'
export { closeCodes, identityText, PROTOCOL_VERSION } from './protocol.ts'
export type { LogEntry, Merged, RegionArrival } from './regions.ts'
export { RegionMerge } from './regions.ts'
export { Relations } from './relations.ts'
export type { Acknowledgement, Pending, PendingPlace } from './sender.ts'
export { IdempotentSender } from './sender.ts'
export { SequenceDedup } from './sequence-dedup.ts'
export type { Arrival, Gap } from './sequenced.ts'
export { SequencedStream } from './sequenced.ts'
export type { Place } from './sequencer.ts'
export { comparePlaces, SequencedReader, Sequencer } from './sequencer.ts'
export type { HistoryEvent } from './shiviz.ts'
export { fromShiViz, shivizParser, toShiViz } from './shiviz.ts'
export type { Counts, DenseCounts, Order } from './vector.ts'
export { compareCounts, compareDense, decodeDense, encodeDense, toDense, toSparse, VectorClock } from './vector.ts'
export type { ClientSocket, ClientSocketClass, WebSocketTransportOptions } from './websocket-client.ts'
export { createWebSocketTransport } from './websocket-client.ts'

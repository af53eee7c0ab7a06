export { createStreamClient } from './client/client.ts'
export type {
  IndexedDb,
  IndexedDbDatabase,
  IndexedDbOpening,
  IndexedDbRequest,
  IndexedDbStore,
  IndexedDbTransaction,
} from './client/indexeddb.ts'
export type { StreamReceiver } from './client/intake.ts'
export { createMemoryPlace } from './client/memory-place.ts'
export type { ClientStatus, RenewReason, StreamClient, StreamClientOptions } from './client/options.ts'
export type { SentMessage } from './client/outgoing.ts'
export type { IndexedDbPlaceOptions } from './client/place-indexeddb.ts'
export { createIndexedDbPlace } from './client/place-indexeddb.ts'
export type { KeptPlace } from './client/place-on-shelf.ts'
export type {
  ClientIdentity,
  ClientLink,
  ClientPlace,
  ClientPosition,
  ClientRecord,
  ClientTransport,
  LinkEvents,
  PendingSend,
} from './client/ports.ts'
export type { ClientRuntime } from './client/runtime.ts'
export type { ClientSocket, ClientSocketClass, WebSocketTransportOptions } from './client/websocket.ts'
export { createWebSocketTransport } from './client/websocket.ts'
export type { CausalArrival, CausalBufferOptions, Caused } from './parts/causal.ts'
export { CausalBuffer } from './parts/causal.ts'
export type { Counts, Order } from './parts/count.ts'
export type { Processed, ReceiveDedupOptions } from './parts/dedup.ts'
export { ReceiveDedup } from './parts/dedup.ts'
export type { DeliveryMode, DeliveryPlace } from './parts/delivery.ts'
export { Delivery } from './parts/delivery.ts'
export type { HybridTime } from './parts/hybrid.ts'
export { compareHybrid, HybridClock } from './parts/hybrid.ts'
export { LamportClock } from './parts/lamport.ts'
export type { LogEntry, Merged, RegionArrival } from './parts/regions.ts'
export { RegionMerge } from './parts/regions.ts'
export type { AcknowledgedRanges, Pending, PendingPlace } from './parts/sender.ts'
export { IdempotentSender } from './parts/sender.ts'
export { SequenceDedup } from './parts/sequence-dedup.ts'
export type { Arrival, Gap } from './parts/sequenced.ts'
export { SequencedStream } from './parts/sequenced.ts'
export type { Place } from './parts/sequencer.ts'
export { comparePlaces, SequencedReader, Sequencer } from './parts/sequencer.ts'
export type { ShivizEvent } from './parts/shiviz.ts'
export { fromShiViz, shivizParser, toShiViz } from './parts/shiviz.ts'
export { SortedCounts } from './parts/sorted-counts.ts'
export type { DenseCounts } from './parts/vector.ts'
export {
  compareCounts,
  compareDense,
  decodeDense,
  encodeDense,
  toDense,
  toSparse,
  VectorClock,
} from './parts/vector.ts'
export type { Decoded } from './protocol/decode.ts'
export { decodeClientFrame, decodeServerFrame } from './protocol/decode.ts'
export { isStreamName } from './protocol/fields.ts'
export { covers, coversPlace, furthest, missingFrom } from './protocol/position.ts'
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
} from './protocol/protocol.ts'
export { closeCodes, identityText, PROTOCOL_VERSION } from './protocol/protocol.ts'
export { Relations } from './protocol/relations.ts'

/** `onceonly/stream`: the client of a room, in browsers and in Node. Its server is `onceonly/stream/server`. */

export { createStreamClient } from './client/client.ts'
export type { OpenClientStorage } from './client/client-storage.ts'
export type { IndexedDbStorageOptions } from './client/indexeddb-storage.ts'
export { createIndexedDbStorage } from './client/indexeddb-storage.ts'
export type { StreamReceiver } from './client/intake.ts'
export { createMemoryStorage } from './client/memory-storage.ts'
export type {
  ClientStatus,
  RenewReason,
  StreamClient,
  StreamClientOptions,
  StreamConnection,
  StreamConnectionOptions,
  StreamRoomOptions,
} from './client/options.ts'
export type { SentMessage } from './client/outgoing.ts'
export type {
  ClientIdentity,
  ClientLink,
  ClientPosition,
  ClientRecord,
  ClientStorage,
  ClientTransport,
  LinkEvents,
  PendingSend,
} from './client/ports.ts'
export { createStreamConnection } from './client/stream-connection.ts'
export type { WebSocketTransportOptions } from './client/websocket.ts'
export { createWebSocketTransport } from './client/websocket.ts'
export type { DeliveryMode } from './parts/delivery.ts'
export type { FrameData, FrameFormat } from './protocol/codec.ts'
export type { CloseReason, Entry, LogPlace, MessageContent, MessageIdentity, Position } from './protocol/protocol.ts'
export { identityText } from './protocol/protocol.ts'
export { publisherOf } from './protocol/published.ts'

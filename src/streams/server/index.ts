/** The server's side of streams: what a region is made of, and the ports it stands on. */

export type { StreamBounds } from '../bounds.ts'
export { createFilePlace } from '../client/place-file.ts'
export type { KeptPlace } from '../client/place-on-shelf.ts'
export type { ExchangeWay, LocalExchange, LocalExchangeOptions } from '../exchange/local.ts'
export { createLocalExchange } from '../exchange/local.ts'
export type { NatsExchangeOptions } from '../exchange/nats.ts'
export { createNatsExchange } from '../exchange/nats.ts'
export type {
  JetStreamConfig,
  JetStreamConsume,
  JetStreamFrom,
  JetStreamInfo,
  JetStreamKept,
  JetStreamLine,
  JetStreamManager,
  JetStreamMessage,
  JetStreamMessages,
  JetStreamQuery,
  JetStreamReader,
  JetStreamReading,
  NatsAsked,
  NatsEar,
  NatsLine,
} from '../exchange/nats-driver.ts'
export { createMemoryRoomLog } from '../log/memory-log.ts'
export { createMemoryOrderLog } from '../log/memory-order.ts'
export type { SqlPlace, SqlPlaceOptions } from '../log/place-sql.ts'
export { createSqlPlace } from '../log/place-sql.ts'
export type { SqlRoomLogOptions } from '../log/sql.ts'
export { createSqlRoomLog } from '../log/sql.ts'
export { createSqlOrderLog } from '../log/sql-order.ts'
export type {
  Entered,
  Exchange,
  ExchangedEntry,
  FenceAnswer,
  FenceRequest,
  Fork,
  FoundPosition,
  OrderAppended,
  OrderBatch,
  OrderClaim,
  OrderLog,
  OrderRow,
  PullAnswer,
  PullRequest,
  ReadBound,
  RegionHint,
  RegionPeer,
  Retention,
  RoomBatch,
  RoomImage,
  RoomLog,
  RoomState,
  RoomWritten,
  SenderState,
  SendRequest,
  SendResult,
  Session,
  SessionClaim,
  SessionLink,
  StoredEntry,
  Trimmed,
} from '../ports.ts'
export type { ConnectOptions, Refusal, StreamRegion, StreamRegionOptions } from './region.ts'
export { createStreamRegion } from './region.ts'
export type {
  HttpServer,
  ServerSocket,
  WebSocketServerClass,
  WebSocketServerLike,
  WebSocketServerOptions,
} from './websocket-driver.ts'
export type { SocketLink } from './websocket-link.ts'
export type { Admission, SocketServer, SocketServerOptions } from './websocket-server.ts'
export { createSocketServer } from './websocket-server.ts'

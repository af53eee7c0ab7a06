/** The server's side of streams: what a region is made of, and the ports it stands on. */

export type { StreamBounds } from './bounds.ts'
export { createMemoryRoomLog } from './memory-log.ts'
export { createMemoryOrderLog } from './memory-order.ts'
export type {
  Entered,
  Exchange,
  ExchangedEntry,
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
} from './ports.ts'
export type { ConnectOptions, Region, RegionOptions } from './region.ts'
export { createRegion } from './region.ts'

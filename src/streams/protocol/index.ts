/** `onceonly/stream/protocol`: the frames of a session, for clients and servers in other languages or on other sockets. */

export type { Decoded } from './decode.ts'
export { decodeServerFrame } from './decode.ts'
export { isStreamName } from './fields.ts'
export { covers, coversPlace, furthest, missingFrom } from './position.ts'
export type {
  AckFrame,
  AckResult,
  ClientFrame,
  CloseReason,
  Delivered,
  EndedFrame,
  Entry,
  HelloFrame,
  LogPlace,
  MessageContent,
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
export { Relations } from './relations.ts'

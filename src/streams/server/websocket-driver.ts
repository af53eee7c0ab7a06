/** What is used of the package `ws` on the server: the library loads no driver, it is handed one. */

import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'

/** The class `WebSocketServer` of `ws`. */
export type WebSocketServerClass = new (options: WebSocketServerOptions) => WebSocketServerLike

export interface WebSocketServerOptions {
  readonly noServer: true
  readonly maxPayload: number
  readonly perMessageDeflate: false
  readonly clientTracking: false
  handleProtocols(protocols: Set<string>): string | false
}

export interface WebSocketServerLike {
  handleUpgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    opened: (socket: ServerSocket, request: IncomingMessage) => void,
  ): void
  close(done?: () => void): void
}

/** An open connection, as the server has it. */
export interface ServerSocket {
  /** The subprotocol that was selected. */
  readonly protocol: string
  /** Bytes that were sent and that the kernel has not taken yet. */
  readonly bufferedAmount: number
  send(data: string | Uint8Array, taken: (error?: Error | null) => void): void
  ping(): void
  pause(): void
  resume(): void
  close(code: number, reason: string): void
  terminate(): void
  on(event: 'message', listen: (data: unknown, isBinary: boolean) => void): unknown
  on(event: 'close', listen: (code: number, reason: Buffer) => void): unknown
  on(event: 'error', listen: (error: Error) => void): unknown
  on(event: 'pong', listen: () => void): unknown
}

/** The server to which connections come; others may serve other paths of it. */
export type HttpServer = Pick<Server, 'on' | 'off'>

import { connect, type Socket } from 'node:net'
import { createLane, type Weather } from './lane.ts'
import { ANSWER_BOUND_MS, ANSWER_QUIET_MS, ANSWER_TAIL_BYTES } from './limits.ts'

export interface Connection {
  /** Moves on what may move, after the weather has changed. */
  flush(): void
  /** From now on no answer reaches the client, and the first one that is lost ends the connection. */
  loseAnswer(): void
  /** Breaks both sides at once. */
  cut(): void
}

export interface ConnectionOptions {
  readonly client: Socket
  readonly target: { readonly host: string; readonly port: number }
  readonly weather: Weather
  /** Called before a request is forwarded to the server: is its answer to be lost? */
  readonly losesAnswerTo: (request: Buffer) => boolean
  /** Given the last bytes of an answer so far: is it complete? Without it, silence has to do. */
  readonly endsAnswer: ((tail: Buffer) => boolean) | undefined
  readonly onClose: (connection: Connection) => void
}

export function createConnection(options: ConnectionOptions): Connection {
  const { client, target, weather, losesAnswerTo, endsAnswer, onClose } = options
  // Half-open on both sides: a client that ends its requests may still wait for the answer.
  const server = connect({ ...target, allowHalfOpen: true, noDelay: true })
  client.setNoDelay(true)

  let losing = false
  let tail = Buffer.alloc(0)
  let quiet: NodeJS.Timeout | undefined
  let bound: NodeJS.Timeout | undefined

  const requests = createLane(client, server, weather, (request) => {
    if (losesAnswerTo(request)) losing = true
    return true
  })
  const answers = createLane(server, client, weather, (bytes) => {
    if (losing) swallow(bytes)
    return !losing
  })

  /** The server has to get rid of its whole answer: one that breaks off could make it roll the work back. */
  function swallow(bytes: Buffer): void {
    tail = Buffer.concat([tail, bytes.subarray(-ANSWER_TAIL_BYTES)]).subarray(-ANSWER_TAIL_BYTES)
    if (endsAnswer?.(tail)) return cut()
    bound ??= setTimeout(cut, ANSWER_BOUND_MS)
    if (endsAnswer !== undefined) return
    clearTimeout(quiet)
    quiet = setTimeout(cut, ANSWER_QUIET_MS)
  }

  function cut(): void {
    // A reset, as from a network device that has forgotten the connection; an orderly end would look like an answer.
    // A socket that is just saying its own end cannot be reset: the call fails, leaves it open, and the process then
    // spins at its exit instead of ending.
    if (client.writableEnded && !client.writableFinished) client.destroy()
    else if (!client.destroyed) client.resetAndDestroy()
    server.destroy()
    for (const timer of [quiet, bound]) clearTimeout(timer)
    for (const lane of [requests, answers]) lane.stop()
  }
  const connection: Connection = {
    flush() {
      requests.flush()
      answers.flush()
    },
    loseAnswer() {
      losing = true
    },
    cut,
  }
  for (const socket of [client, server]) {
    // When one side breaks, the other is cut in the same way. The error itself belongs to the test's client.
    socket.on('error', cut)
    socket.on('close', () => {
      if (!client.destroyed || !server.destroyed) return
      cut()
      onClose(connection)
    })
  }
  return connection
}

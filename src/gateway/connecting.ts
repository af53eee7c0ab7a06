import type { ClientRequest } from 'node:http'

const nothing = () => {}

/**
 * Gives a request up that has no connection in time.
 *
 * @param connected told when there is one: from then on bytes may have left
 */
export function connectWithin(request: ClientRequest, connectMs: number, connected: () => void = nothing): void {
  const giveUp = () => request.destroy(new Error(`No connection within ${connectMs} ms.`))
  const timer = setTimeout(giveUp, connectMs)
  const made = () => {
    clearTimeout(timer)
    connected()
  }
  request.once('socket', (socket) => {
    if (!socket.connecting) made()
    else socket.once('encrypted' in socket ? 'secureConnect' : 'connect', made)
  })
  request.once('close', () => clearTimeout(timer))
}

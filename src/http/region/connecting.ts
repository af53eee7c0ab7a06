import type { ClientRequest } from 'node:http'
import { isIP } from 'node:net'

/** Where a URL leads to, for a request of Node. */
export interface ConnectPlace {
  readonly hostname: string
  readonly port: number
  /** Left out, it would be taken from the client's `Host`; and an address is no name. */
  readonly servername?: string
}

export function placeOf(url: URL): ConnectPlace {
  const secure = url.protocol === 'https:'
  const hostname = url.hostname.replace(/^\[|\]$/g, '')
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port)
  return { hostname, port, ...(secure ? { servername: isIP(hostname) === 0 ? hostname : '' } : {}) }
}

const nothing = () => {}

/**
 * Gives a request up that has no connection in time.
 *
 * @param connected called when there is one: from then on bytes may have left
 */
export function connectWithin(request: ClientRequest, connectMs: number, connected: () => void = nothing): void {
  request.once('socket', (socket) => {
    // A connection of the pool, as for most requests.
    if (!socket.connecting) return connected()
    const giveUp = () => request.destroy(new Error(`No connection within ${connectMs} ms.`))
    const timer = setTimeout(giveUp, connectMs)
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer)
      connected()
    })
    request.once('close', () => clearTimeout(timer))
  })
}

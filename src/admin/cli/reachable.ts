import { once } from 'node:events'
import { connect } from 'node:net'
import { SECOND } from '../../ledger/core/limits.ts'

/** A service that takes longer is not ready for requests either. */
const CONNECT_MS = 3 * SECOND

/** Why no connection to the host of a URL is made in time; null where one is. */
export async function whyUnreachable(address: string): Promise<string | null> {
  const { hostname, port, protocol } = new URL(address)
  const host = hostname.replace(/^\[|\]$/g, '')
  const socket = connect({ host, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) })
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_MS) })
    return null
  } catch (error) {
    const { name, code, message } = error as NodeJS.ErrnoException
    return name === 'AbortError' ? `no connection within ${CONNECT_MS} ms` : message || String(code)
  } finally {
    // A socket that is destroyed while it connects may still fail.
    socket.on('error', () => {}).destroy()
  }
}

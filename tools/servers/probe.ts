import { connect } from 'node:net'
import { PROBE_BOUND_MS } from './limits.ts'

/** Says `greeting` to a loopback port, and answers whether the first thing that comes back begins as expected. */
export function answers(port: number, greeting: string, expected: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ host: '127.0.0.1', port, timeout: PROBE_BOUND_MS })
  socket.once('connect', () => socket.write(greeting, 'latin1'))
  socket.once('data', (answer) => {
    resolve(answer.toString('latin1').startsWith(expected))
    socket.destroy()
  })
  socket.once('timeout', () => socket.destroy())
  socket.once('error', () => resolve(false))
  socket.once('close', () => resolve(false))
  return promise
}

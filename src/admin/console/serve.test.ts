import { connect } from 'node:net'
import { test } from 'node:test'
import { until } from '../../testing/until.ts'
import type { Console } from './console.ts'
import { createConsoleServer } from './serve.ts'

test('one address has a bounded number of connections, and the rest of them are closed', async (context) => {
  const answering = { stop() {} } as unknown as Console
  const server = createConsoleServer({ console: answering, onError() {} })
  const { port } = await server.listen(0, '127.0.0.1')
  const head = 'POST /api/console/session HTTP/1.1\r\nHost: x\r\nContent-Length: 250000\r\n'
  const sockets = Array.from({ length: 300 }, () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.resume().write(head)
    return socket
  })
  context.after(async () => {
    for (const socket of sockets) socket.destroy()
    await server.stop()
  })
  await until('108 are closed', () => sockets.filter(({ destroyed }) => destroyed).length === 108)
})

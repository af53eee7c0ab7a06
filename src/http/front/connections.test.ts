import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { test } from 'node:test'
import { until } from '../../testing/until.ts'
import { limitConnections } from './connections.ts'
import { createShares } from './shares.ts'

test('an address past its share of the connections is turned away, another one is not', async (t) => {
  const connections = createShares({ most: () => 8, share: 0.75 })
  const server = createServer((socket) => socket.on('error', () => {}))
  limitConnections(server, connections)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const open = (localAddress: string) => connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
  const sockets = Array.from({ length: 20 }, () => open('127.0.0.1'))
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  await until(
    'the others are closed',
    () => sockets.filter(({ destroyed, readableEnded }) => destroyed || readableEnded).length === 14,
  )
  sockets.push(open('127.0.0.2'))
  await until('it is connected', () => connections.underWay === 7)
  for (const socket of sockets) socket.destroy()
  await until('all places are free', () => connections.underWay === 0)
})

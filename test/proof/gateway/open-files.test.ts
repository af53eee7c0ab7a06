import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { startGateway, temporaryFolder } from '../../support/gateway/process.ts'
import { openCounting } from '../../support/gateway/world.ts'

const FILES = 400

test('one address cannot take all the files that a gateway may have open', async (context) => {
  const upstream = await openCounting(context)
  const folder = await temporaryFolder(context)
  const config = { upstream: upstream.url }
  const { port } = await startGateway(context, folder, { config, store: 'memory', openFiles: FILES })
  const open = (localAddress: string) => connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
  const flood = Array.from({ length: 2 * FILES }, () => open('127.0.0.1').resume())
  context.after(() => {
    for (const socket of flood) socket.destroy()
  })
  const most = (FILES / 2) * 0.75
  await until('the others are closed', () => flood.filter(({ destroyed }) => destroyed).length === 2 * FILES - most)
  const quiet = open('127.0.0.2')
  let received = ''
  quiet.on('data', (data) => (received += String(data)))
  quiet.write('GET /things HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await until('another address is answered', () => received !== '' || quiet.destroyed)
  assert.match(received, /^HTTP\/1.1 201 /)
})

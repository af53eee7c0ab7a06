import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { openCluster, type TestServer } from '../../support/service/cluster.ts'

const MIB = 1_024 * 1_024
const PIECES = 2_000_000

async function residentMib({ pid }: TestServer): Promise<number> {
  const [, kib = ''] = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1_024
}

test('a body in two million pieces of one byte does not fill the memory', async (context) => {
  const cluster = await openCluster('sqlite')
  context.after(() => cluster[Symbol.asyncDispose]())
  const server = cluster.servers[0] as TestServer
  const before = await residentMib(server)
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1').on('error', () => {})
  context.after(() => socket.destroy())
  const head = [
    'POST /api/messages HTTP/1.1',
    'Host: x',
    `Authorization: Bearer ${server.apiKey}`,
    'Content-Type: application/json',
    'Transfer-Encoding: chunked',
  ]
  let received = ''
  socket.on('data', (data) => (received += String(data)))
  socket.write([...head, '', '1\r\n \r\n'.repeat(PIECES)].join('\r\n'))
  const grown: number[] = []
  socket.write('0\r\n\r\n')
  await until('it is answered', async () => {
    grown.push((await residentMib(server)) - before)
    return received !== ''
  })
  assert.match(received, /^HTTP\/1.1 400 /)
  const most = Math.max(...grown)
  assert.ok(most < 400, `${Math.round(most)} MiB for ${PIECES / MIB} MiB`)
})

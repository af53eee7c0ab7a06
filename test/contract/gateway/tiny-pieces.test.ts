import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { until } from '../../../src/testing/until.ts'
import { openCounting, openGateway } from '../../support/gateway/world.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** What is held, and not only not yet collected. */
function heldBytes(): number {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const PIECES = 200_000
const MIB = 1_024 * 1_024

/** A body of so many chunks of one byte each, of which the last one never comes. */
function sendTiny(context: TestContext, port: number, path: string): void {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  context.after(() => socket.destroy())
  const head = ['Host: x', 'Content-Type: text/plain', 'Idempotency-Key: tiny', 'Transfer-Encoding: chunked']
  socket.write([`POST ${path} HTTP/1.1`, ...head, '', '1\r\na\r\n'.repeat(PIECES)].join('\r\n'))
}

test('a body in 200 000 pieces takes as much memory as one of its length', async (context) => {
  const upstream = await openCounting(context)
  const gateway = await openGateway(context, upstream.url)
  const before = heldBytes()
  sendTiny(context, gateway.port, '/things')
  await until(
    'all of it has come',
    () => gateway.load.bodyBytes,
    (bytes) => bytes === PIECES,
  )
  const more = heldBytes() - before
  assert.ok(more < 16 * MIB, `${Math.round(more / MIB)} MiB for ${PIECES} bytes`)
})

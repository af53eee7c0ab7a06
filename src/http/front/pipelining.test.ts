import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { test } from 'node:test'
import { until } from '../../testing/until.ts'
import { frontLimits } from './limits.ts'
import { mayPipeline } from './pipelining.ts'

const { pipelined } = frontLimits

for (const [what, count, begun, cuts] of [
  ['its client leaves', 3, 3, 0],
  ['it is cut', pipelined * 3, pipelined, 1],
] as const) {
  test(`every response of a connection is closed once when ${what}`, async (t) => {
    const closed = new Map<number, number>()
    let [began, cut] = [0, 0]
    const server = createServer((message, response) => {
      const number = began
      const close = () => void closed.set(number, (closed.get(number) ?? 0) + 1)
      message.on('error', () => {}).resume()
      const may = mayPipeline(message, response, () => {
        cut++
        response.on('close', close)
      })
      if (!may) return
      began++
      response.on('close', close)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
    t.after(() => {
      socket.destroy()
      server.close()
    })
    socket.resume().write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(count))
    await until('they have begun', () => began === begun)
    socket.destroy()
    await until('all are closed', () => closed.size === begun + cuts)
    assert.deepEqual(new Set(closed.values()), new Set([1]))
    assert.deepEqual([began, cut], [begun, cuts])
  })
}

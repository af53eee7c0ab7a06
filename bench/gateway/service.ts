import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Order } from '../harness/orders.ts'
import { receiptOf } from '../harness/orders.ts'
import { COUNT_PATH } from './task.ts'

/** The service behind every proxy: it does nothing but count. */
let effects = 0
const READ = '{"orders":[]}'

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => void chunks.push(chunk))
  request.on('end', () => {
    const body = answerTo(request.method ?? '', request.url ?? '', Buffer.concat(chunks).toString())
    response.writeHead(request.method === 'POST' ? 201 : 200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    })
    response.end(body)
  })
})

function answerTo(method: string, url: string, body: string): string {
  if (url === COUNT_PATH) return JSON.stringify({ effects })
  effects++
  return method === 'POST' ? JSON.stringify(receiptOf(JSON.parse(body) as Order)) : READ
}

process.once('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
})
server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})

import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { connectWithin } from '../region/connecting.ts'
import { answerHeaders, originForm, requestHeaders } from './headers.ts'
import type { Pass } from './pass.ts'
import { cutWhenIdle } from './upstream.ts'

/** Passes a change of protocol on, as for WebSocket: once both sides agreed, bytes go both ways unread. */
export function passUpgrade(pass: Pass, message: IncomingMessage, client: Duplex, first: Buffer): void {
  const { upstream, passing } = pass
  const headers = requestHeaders({
    message,
    trustForwarded: passing.trustForwarded,
    host: passing.host === 'upstream' ? upstream.host : null,
    length: 0,
    added: ['Connection', 'Upgrade', 'Upgrade', message.headers.upgrade ?? ''],
  })
  const head = { method: message.method ?? 'GET', target: originForm(message.url ?? '/'), headers }
  // The upstream may see the end of the offer elsewhere: no other request may follow on this connection.
  const request = upstream.open(head, 'own')
  connectWithin(request, pass.times.connectMs)
  const stop = () => void request.destroy()
  client.on('error', stop).once('close', stop)

  request.once('upgrade', (answer, server, head) => {
    client.write(headOf(answer, ['Connection', 'Upgrade', 'Upgrade', answer.headers.upgrade ?? '']))
    if (head.length > 0) client.write(head)
    if (first.length > 0) server.write(first)
    server.on('error', () => client.destroy()).once('close', () => client.destroy())
    client.once('close', () => server.destroy())
    server.pipe(client)
    client.pipe(server)
  })
  // The upstream does not want to: its answer is the answer.
  request.once('response', (answer) => {
    cutWhenIdle(request, pass.times.idleMs)
    client.write(headOf(answer, ['Connection', 'close']))
    answer.on('error', () => client.destroy())
    answer.pipe(client)
  })
  request.on('error', () => {
    if (client.writable) client.end('HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  })
  request.end()
}

/** A head as it goes over the wire. What its parser let through has no line ends in it. */
function headOf(answer: IncomingMessage, added: readonly string[]): string {
  const headers = [...answerHeaders(answer), ...added]
  const lines = [`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage ?? ''}`]
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

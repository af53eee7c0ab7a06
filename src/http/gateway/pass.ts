import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { sendAnswer } from '../protocol/capture-node.ts'
import { hasNoBody } from '../protocol/exchange.ts'
import type { Voice } from '../protocol/voice.ts'
import { connectWithin } from '../region/connecting.ts'
import type { Timeouts } from './config.ts'
import { flow, flowBack } from './flow.ts'
import type { Passing } from './headers.ts'
import { answerHeaders, originForm, requestHeaders } from './headers.ts'
import { endInOnePiece } from './one-piece.ts'
import type { Spool } from './spool.ts'
import type { Upstream } from './upstream.ts'
import { cutWhenIdle, refuseSwitch } from './upstream.ts'

/** How requests are passed on that nobody protects. */
export interface Pass {
  readonly upstream: Upstream
  readonly passing: Passing
  readonly times: Required<Timeouts>
  readonly voice: Voice
}

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/** Streams a request to its upstream and the answer back; either side sets the pace of the other. */
export function passOn(pass: Pass, message: IncomingMessage, response: ServerResponse, spool?: Spool): void {
  const { upstream, passing } = pass
  const method = message.method ?? 'GET'
  const read = spool?.taken === true ? spool : null
  const head = {
    method,
    target: originForm(message.url ?? '/'),
    headers: requestHeaders({
      message,
      trustForwarded: passing.trustForwarded,
      host: passing.host === 'upstream' ? upstream.host : null,
      ...(read === null ? {} : { length: read.length }),
    }),
  }
  const hasBody = hasContent(message)
  /** Once the upstream is gone, the rest of the body is read and dropped. */
  let drop = (): void => void message.resume()
  attempt(false)

  function attempt(again: boolean): void {
    const request = upstream.open(head, again ? 'fresh' : 'pooled')
    let answered = false
    connectWithin(request, pass.times.connectMs)
    const clientLeft = () => {
      if (!response.writableFinished) request.destroy()
    }
    response.once('close', clientLeft)
    request.once('response', (answer) => {
      answered = true
      if (!isEvents(answer)) cutWhenIdle(request, pass.times.idleMs)
      relay(answer, response)
    })
    const failed = (error: Error) => {
      response.off('close', clientLeft)
      if (answered || response.destroyed) return drop()
      // The upstream closed an idle connection while we used it. What changes nothing can be asked again.
      if (!again && request.reusedSocket && !hasBody && SAFE.has(method)) return attempt(true)
      drop()
      refuse(pass, response, error)
    }
    request.on('error', failed)
    refuseSwitch(request, failed)
    if (read !== null) read.sendTo(request)
    else if (hasBody) drop = pump(message, request, pass.times.idleMs)
    else request.end()
  }
}

function hasContent({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/** They come when something happens, which may be never. */
function isEvents({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.toLowerCase().startsWith('text/event-stream') === true
}

/** A client that stops in the middle of its body holds a connection of the upstream, too. */
function pump(message: IncomingMessage, request: ClientRequest, idleMs: number): () => void {
  const idle = setTimeout(() => request.destroy(new Error(`Nothing of the body came for ${idleMs} ms.`)), idleMs)
  message.on('data', () => void idle.refresh())
  message.once('end', () => clearTimeout(idle))
  request.once('close', () => clearTimeout(idle))
  // Half a body must never look like a whole one.
  message.once('aborted', () => request.destroy(new Error('The client hung up.')))
  message.on('error', () => {})
  return flow(message, request)
}

function relay(answer: IncomingMessage, response: ServerResponse): void {
  const status = answer.statusCode ?? 0
  const length = answer.headers['content-length']
  answer.on('error', () => response.destroy())
  response.writeHead(status, answer.statusMessage, answerHeaders(answer.rawHeaders))
  if (length === undefined || length === '0' || hasNoBody(status) || response.req.method === 'HEAD') {
    // Events come one by one, perhaps never: whoever waits for them wants to know that they may come.
    if (length === undefined) response.flushHeaders()
    return flowBack(answer, response)
  }
  answer.once('data', (first: Buffer) => {
    // Most answers are one piece, which leaves together with its head.
    if (first.length === Number(length)) return endInOnePiece(response, first)
    flowBack(answer, response)
    if (!response.write(first)) answer.pause()
  })
}

function refuse({ voice }: Pass, response: ServerResponse, error: Error): void {
  const detail = `The service behind the gateway did not answer: ${error.message}`
  if (response.headersSent) response.destroy()
  else sendAnswer(response, voice.say('upstream-failed', { detail }))
}

import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { sendAnswer } from '../protocol/capture-node.ts'
import { hasNoBody } from '../protocol/exchange.ts'
import type { ProblemWriter } from '../protocol/problem-writer.ts'
import { connectWithin } from '../region/connecting.ts'
import type { Timeouts } from './config.ts'
import { Crowded } from './crowded.ts'
import { flow, flowBack } from './flow.ts'
import type { Gathering } from './gather.ts'
import { gather } from './gather.ts'
import type { Passing } from './headers.ts'
import { answerHeaders, originForm, requestHeaders } from './headers.ts'
import type { Intake } from './intake.ts'
import { hasContent, tooBusy } from './intake.ts'
import { endInOnePiece } from './one-piece.ts'
import type { Spool } from './spool.ts'
import { SlowBody, SpoolFull } from './spool.ts'
import type { Upstream } from './upstream.ts'
import { cutWhenIdle, keepPlace, refuseSwitch } from './upstream.ts'

/** How unprotected requests are passed on. */
export interface Pass {
  readonly upstream: Upstream
  readonly passing: Passing
  readonly times: Required<Timeouts>
  readonly problems: ProblemWriter
}

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/** Streams a request to its upstream and the answer back; either side sets the pace of the other. */
export function passOn(
  pass: Pass,
  message: IncomingMessage,
  response: ServerResponse,
  intake: Intake,
  spool?: Spool,
): void {
  const { upstream, passing } = pass
  const { front, key } = intake
  // The client is gone, and nothing of the request was sent on.
  if (response.closed) return intake.memory.release()
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
  /** The body, as far as it has come; null where there is none, or where it was read before. */
  let gathering: Gathering | null = null
  /** Once the upstream is gone, the rest of the body is read and dropped. */
  let drop = (): void => void message.resume()
  let under: ClientRequest | null = null
  let stopGathering = nothing
  let stopWaiting = nothing
  response.once('close', () => {
    stopGathering()
    stopWaiting()
    intake.memory.release()
    if (!response.writableFinished) under?.destroy()
  })

  // 1. Enough of the body, 2. a place at the upstream, 3. the request itself.
  if (read !== null || !hasBody) return placed(false)
  stopGathering = gather({
    message,
    intake,
    pauseMs: pass.times.idleMs,
    ready(gathered) {
      gathering = gathered
      placed(false)
    },
    failed: cut,
  })

  function placed(again: boolean): void {
    stopWaiting = upstream.places.whenFree(
      key,
      () => attempt(again),
      () => cut(new Crowded()),
    )
  }

  /** The request ends here, by a fault of its own or for want of room. Half a body must never look like a whole one. */
  function cut(error: Error): void {
    if (under === null) end(error)
    else under.destroy(error)
  }

  function end(error: Error): void {
    drop()
    refuse(pass, response, intake, error)
  }

  function attempt(again: boolean): void {
    const request = upstream.open(head, again ? 'fresh' : 'pooled')
    const moveTo = keepPlace(request, upstream.places, key)
    under = request
    let answered = false
    connectWithin(request, pass.times.connectMs)
    const failed = (error: Error) => {
      if (answered || response.destroyed) return drop()
      // The upstream closed an idle connection while we used it. What changes nothing can be asked again.
      if (!again && request.reusedSocket && !hasBody && SAFE.has(method)) return placed(true)
      end(error)
    }
    request.once('response', (answer) => {
      const isStream = isEvents(answer)
      if (isStream && !moveTo(front.streams)) return void request.destroy(new Crowded())
      answered = true
      if (!isStream) cutWhenIdle(request, pass.times.idleMs)
      relay(answer, response)
    })
    request.on('error', failed)
    refuseSwitch(request, failed)
    if (read !== null) read.sendTo(request)
    else if (gathering === null) request.end()
    else drop = pump(message, request, intake, gathering)
  }
}

const nothing = (): void => {}

/** They come when something happens, which may be never. */
function isEvents({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.toLowerCase().startsWith('text/event-stream') === true
}

/** What has come of the body, and the rest of it as it comes. */
function pump(
  message: IncomingMessage,
  request: ClientRequest,
  intake: Intake,
  { first, isWhole }: Gathering,
): () => void {
  if (isWhole) {
    endInOnePiece(request, first)
    return () => void message.resume()
  }
  message.once('aborted', () => request.destroy(new Error('The client hung up.')))
  const stop = flow(message, request)
  if (request.write(first, () => intake.memory.release())) message.resume()
  return stop
}

function relay(answer: IncomingMessage, response: ServerResponse): void {
  const status = answer.statusCode ?? 0
  const length = answer.headers['content-length']
  answer.on('error', () => response.destroy())
  response.writeHead(status, answer.statusMessage, answerHeaders(answer))
  if (length === undefined || length === '0' || hasNoBody(status) || response.req.method === 'HEAD') {
    // Events come one by one, perhaps never: the client needs the headers at once.
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

function refuse({ problems }: Pass, response: ServerResponse, { note }: Intake, error: Error): void {
  if (response.headersSent) return void response.destroy()
  if (error instanceof SlowBody || error instanceof SpoolFull || error instanceof Crowded) {
    // The rest of the body is not waited for.
    response.shouldKeepAlive = false
    const answer =
      error instanceof SlowBody
        ? problems.write('request-too-slow', { detail: error.message })
        : tooBusy(problems, note, error)
    return sendAnswer(response, answer)
  }
  const detail = `The service behind the gateway did not answer: ${error.message}`
  sendAnswer(response, problems.write('upstream-failed', { detail }))
}

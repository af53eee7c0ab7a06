import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Captured } from '../protocol/exchange.ts'
import { hasNoBody } from '../protocol/exchange.ts'
import { createPassage } from '../protocol/passage.ts'
import type { RawHeaders } from './headers.ts'
import { answerHeaders, headerList } from './headers.ts'
import { gatewayLimits } from './limits.ts'
import { endInOnePiece } from './one-piece.ts'
import type { Recording } from './send-once.ts'

/** The end of the body was not seen. */
const UNSEEN = { bytes: null, sha256: null }

export interface Delivery {
  readonly answer: IncomingMessage
  readonly response: ServerResponse
  readonly running: Recording
  readonly maxBytes: number
  /** What is recorded of what is answered. */
  readonly keep: (captured: Captured) => Captured
  /** The upstream gives the answer again under the same key: a cut one is no outcome, and can be requested again. */
  readonly repeatable: boolean
}

/** `cut`: nothing of it has reached the client, and nothing was recorded. */
export type Delivered = 'sent' | 'cut'

type Begun = Delivery & { readonly headers: RawHeaders }

/** Brings the upstream's answer to the client, and records it before its last byte leaves. Never rejects. */
export async function deliver(given: Delivery): Promise<Delivered> {
  const { answer } = given
  const delivery: Begun = { ...given, headers: answerHeaders(answer) }
  const length = Number(answer.headers['content-length'] ?? Number.NaN)
  const bodiless = delivery.response.req.method === 'HEAD' || hasNoBody(answer.statusCode ?? 0)
  if (bodiless || length <= Math.min(gatewayLimits.wholeAnswerBytes, delivery.maxBytes)) return deliverWhole(delivery)
  await deliverStream(delivery, Number.isInteger(length))
  return 'sent'
}

function captured({ answer, keep, headers }: Begun, body: Captured['body']): Captured {
  return keep({ status: answer.statusCode ?? 0, headers: headerList(headers), body })
}

function begin({ answer, response, headers }: Begun): void {
  response.writeHead(answer.statusCode ?? 0, answer.statusMessage, [...headers])
}

/** Short answers, the most by far: one piece in, one record, one piece out. */
async function deliverWhole(delivery: Begun): Promise<Delivered> {
  const { answer, response, running, repeatable } = delivery
  const { body, whole } = await readAnswer(answer)
  if (!whole && repeatable) return 'cut'
  await running.finish(captured(delivery, whole ? body : UNSEEN))
  if (response.destroyed) return 'sent'
  begin(delivery)
  if (whole) endInOnePiece(response, body)
  // What the upstream cut is cut here too: it is the only way to say that it is not all.
  else response.write(body, () => response.destroy())
  return 'sent'
}

function readAnswer(answer: IncomingMessage): Promise<{ readonly body: Buffer; readonly whole: boolean }> {
  const { promise, resolve } = Promise.withResolvers<{ readonly body: Buffer; readonly whole: boolean }>()
  const chunks: Buffer[] = []
  const end = () => {
    const [only = Buffer.alloc(0)] = chunks
    resolve({ body: chunks.length <= 1 ? only : Buffer.concat(chunks), whole: answer.complete })
  }
  answer.on('data', (chunk: Buffer) => void chunks.push(chunk))
  answer.once('end', end).once('error', end).once('close', end)
  return promise
}

/** Long responses, and those of unknown length: passed on while they are recorded. */
async function deliverStream(delivery: Begun, lengthKnown: boolean): Promise<void> {
  const { answer, response, running, maxBytes } = delivery
  const { status, headers } = captured(delivery, new Uint8Array())
  const passage = createPassage(answer[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>, {
    status,
    headers,
    maxBytes,
    running: {
      context: running.context,
      finish: (seen) => running.finish(captured(delivery, seen.body)),
      // The status was given; what was cut after it cannot change what happened. Where the rest can be asked for, it
      // is.
      fail: async (error) =>
        delivery.repeatable
          ? running.fail(new Error('The upstream cut its answer.', { cause: error }))
          : void (await running.finish(captured(delivery, UNSEEN))),
    },
  })
  response.once('close', () => passage.leave())
  if (!response.destroyed) begin(delivery)
  else passage.leave()
  let held: Uint8Array | null = null
  try {
    for (;;) {
      const chunk = await passage.read()
      // With a known length the client sees the end by itself: the last piece waits for the record.
      const due: Uint8Array | null = lengthKnown ? held : chunk
      held = chunk
      if (due !== null && !response.destroyed && !response.write(due)) await drained(response)
      if (chunk === null) return void response.end()
    }
  } catch {
    if (held !== null && lengthKnown && !response.destroyed) response.write(held, () => response.destroy())
    else response.destroy()
  }
}

function drained(response: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  response.once('drain', resolve).once('close', resolve)
  return promise.finally(() => response.off('drain', resolve).off('close', resolve))
}

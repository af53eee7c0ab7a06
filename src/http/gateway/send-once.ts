import { setTimeout as sleep } from 'node:timers/promises'
import { clientKey } from '../front/addresses.ts'
import type { Running } from '../protocol/running.ts'
import { Crowded } from './crowded.ts'
import { clientBehind, originForm, requestHeaders } from './headers.ts'
import { gatewayLimits } from './limits.ts'
import type { Asked, Rule } from './rule.ts'
import type { RequestHead, Sent } from './upstream.ts'
import { keepPlace, placeAt, send } from './upstream.ts'

/** What the delivery of an answer needs of a running request. */
export type Recording = Pick<Running<unknown>, 'context' | 'finish' | 'fail'>

export interface SentOnce {
  readonly sent: Sent
  /** An earlier request under the same key has an unknown outcome. */
  readonly repeated: boolean
}

/** Once; where the upstream honours keys, as often as it may be in doubt, under the same key. */
export async function sendOnce(
  rule: Rule,
  asked: Asked,
  running: Running<unknown>,
  /** The upstream gets a key for a request that has none. */
  keyless: boolean,
  /** How often an answer to this very request was cut. */
  cuts: number,
): Promise<SentOnce> {
  const { upstream, passing, times, honoursKeys } = rule
  const { message, spool } = asked
  const shareKey = clientKey(message, passing.trustForwarded)
  const { context } = running
  const { signal, attemptNumber } = context

  async function sendPlaced(head: RequestHead): Promise<Sent> {
    const placed = placeAt(upstream, shareKey, signal)
    if (placed !== true && !(await placed)) return { kind: 'not-sent', error: new Crowded() }
    const request = upstream.open(head, 'fresh')
    keepPlace(request, upstream.places, shareKey)
    return send(request, times, () => spool.sendTo(request), signal)
  }

  for (let tries = 0; ; tries++) {
    const headers = requestHeaders({
      message,
      trustForwarded: passing.trustForwarded,
      client: clientBehind(message, passing),
      host: passing.host === 'upstream' ? upstream.host : null,
      length: spool.length,
      identityEncoding: true,
      ...(keyless && honoursKeys ? { added: [rule.keyHeader, keyWhileHeld(context)] } : {}),
    })
    const head = { method: message.method ?? 'POST', target: originForm(message.url ?? '/'), headers }
    const sent = await sendPlaced(head)
    const repeated = honoursKeys && (tries + cuts > 0 || attemptNumber > 1)
    const again = honoursKeys && tries < gatewayLimits.redrives && isOpen(sent, repeated)
    if (!again || signal.aborted) return { sent: tries + cuts === 0 ? sent : sentBefore(sent), repeated }
    if (sent.kind === 'answered') sent.answer.on('error', () => {}).resume()
    await sleep(gatewayLimits.redriveMs)
  }
}

/** Nothing is sent under a lease that is over, also where the process was paused and no timer has fired yet. */
function keyWhileHeld(context: Running<unknown>['context']): string {
  context.signal.throwIfAborted()
  return context.effectKey
}

/** No response came, or the earlier request is still running. */
function isOpen(sent: Sent, repeated: boolean): boolean {
  if (sent.kind === 'answered') return repeated && sent.answer.statusCode === IN_USE
  return sent.kind === 'broken' && !sent.late
}

/** The word for a key whose first request is under way, wherever keys are honoured. */
export const IN_USE = 409

/** A later try that never left proves nothing of the first. */
function sentBefore(sent: Sent): Sent {
  return sent.kind === 'not-sent' ? { kind: 'broken', error: sent.error, late: false } : sent
}

/**
 * With these a service speaks of the try that it answers. Of an earlier one, which it may still work on, they say
 * nothing.
 */
export const ofThisTry = new Set([401, 403, 404, 407, 408, 409, 421, 425, 429, 503])

/** The client gets the service's response; the earlier request's outcome stays unknown, and a retry may ask again. */
export function stillInDoubt(running: Recording, status: number): Recording {
  const finish = async () => {
    await running.fail(new Error(`An earlier try is in doubt, and the upstream answered ${status} to this one.`))
    return null
  }
  return { context: running.context, finish, fail: (error) => running.fail(error) }
}

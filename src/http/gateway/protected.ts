import type { IncomingMessage, ServerResponse } from 'node:http'
import { isOnceError } from '../../ledger/core/errors.ts'
import { notDone } from '../../ledger/core/verdict.ts'
import { NodeHead, sendAnswer } from '../protocol/capture-node.ts'
import type { Answer, Captured, Incoming } from '../protocol/exchange.ts'
import type { BodyQuestion } from '../protocol/large-body.ts'
import type { BegunRequest } from '../protocol/protect.ts'
import type { Running } from '../protocol/running.ts'
import { NoAuthorizer } from './authorize.ts'
import { MissingCaller } from './caller.ts'
import { Crowded } from './crowded.ts'
import { type Delivered, deliver } from './deliver.ts'
import { clientOf, writtenClient } from './headers.ts'
import type { Intake } from './intake.ts'
import { tooBusy } from './intake.ts'
import { gatewayLimits } from './limits.ts'
import { passOn } from './pass.ts'
import type { Asked, Rule } from './rule.ts'
import { IN_USE, ofThisTry, type SentOnce, sendOnce, stillInDoubt } from './send-once.ts'
import { createSpool, SlowBody, SpoolFull } from './spool.ts'
import type { Sent } from './upstream.ts'
import type { GatewayDecision, Guarded, Note, Watch } from './watch.ts'
import { decisionOf, whoOf } from './watch.ts'

/** Answers a request that a rule protects: from the record, or by forwarding it, once. Never rejects. */
export async function protect(
  rule: Rule,
  message: IncomingMessage,
  response: ServerResponse,
  intake: Intake,
  notify?: Watch,
): Promise<void> {
  const { note } = intake
  const { maxBodyBytes: maxBytes, times, tokens } = rule
  const spool = createSpool(message, { maxBytes, bodyMs: times.bodyMs, room: intake })
  const asked: Asked = { message, spool, verified: tokens === null ? null : await tokens.verify(message) }
  Object.assign(note, { rule, asked })
  /** The code that passes the body on also frees its memory. */
  let handedOn = false
  try {
    const incoming = new GatewayIncoming(message, response, message.url ?? '/', { rule, asked, intake })
    const begun = await rule.route.begin(incoming, asked, incoming)
    note.decision = decisionAbout(begun)
    if (begun.content !== undefined) reportContent(rule, note, begun.content, notify)
    switch (begun.kind) {
      case 'unprotected':
        handedOn = true
        return passOn(rule, message, response, intake, asked.spool)
      case 'answer':
        return sendAnswer(response, begun.answer)
      case 'run':
        return await begun.inside(() =>
          forward(rule, asked, response, begun, { keyless: begun.content !== undefined, note }),
        )
    }
  } catch (error) {
    const answer = refusal(rule, error, note)
    note.decision ??= 'refused'
    // The rest of such a body is not waited for.
    if (error instanceof SlowBody || error instanceof SpoolFull) response.shouldKeepAlive = false
    if (response.headersSent) response.destroy()
    else sendAnswer(response, answer)
  } finally {
    asked.spool.discard()
    if (!handedOn) intake.memory.release()
  }
}

interface Source {
  readonly rule: Rule
  readonly asked: Asked
  readonly intake: Intake
}

/** A request whose body is in its spool; a large one is read in another thread. */
class GatewayIncoming extends NodeHead<Source> implements Incoming {
  body(): ReturnType<Incoming['body']> {
    return this.source.asked.spool.body()
  }

  askElsewhere(question: BodyQuestion): ReturnType<NonNullable<Incoming['askElsewhere']>> {
    const { intake } = this.source
    const looking = intake.front.fingerprints.ask(question, intake.key)
    intake.looking = looking
    return looking
  }

  /** Another region may be the home of its key, and its service must see the same client. */
  get client(): string | undefined {
    const { rule, asked } = this.source
    return rule.passing.regional ? writtenClient(clientOf(asked.message, rule.passing.trustForwarded)) : undefined
  }
}

function decisionAbout(begun: BegunRequest<unknown>): GatewayDecision {
  switch (begun.kind) {
    case 'unprotected':
      return begun.content === undefined ? 'unkeyed' : 'unguarded'
    case 'answer':
      return decisionOf(begun.answer, begun.refused)
    case 'run':
      return 'first'
  }
}

/** What was found about a content; a new one is no event. */
const found: Partial<Record<GatewayDecision, Guarded['what']>> = {
  dedup_replay: 'blocked',
  in_progress: 'pending',
  unavailable: 'error',
  unguarded: 'error',
}

function reportContent(rule: Rule, note: Note, hash: string, notify: Watch | undefined): void {
  const what = note.decision === null ? undefined : found[note.decision]
  if (what !== undefined) notify?.({ kind: 'guard', what, route: rule.label, tenant: whoOf(note)?.tenant ?? '', hash })
}

/** The one forward of this identity. */
async function forward(
  rule: Rule,
  asked: Asked,
  response: ServerResponse,
  running: Running<unknown>,
  { keyless, note }: { readonly keyless: boolean; readonly note: Note },
): Promise<void> {
  for (let cuts = 0; ; cuts++) {
    const { sent, repeated } = await sendOnce(rule, asked, running, keyless, cuts)
    if (sent.kind === 'not-sent' && sent.error instanceof Crowded) {
      const answer = tooBusy(rule.problems, note, sent.error)
      await running.finish({ status: answer.status, headers: [], body: new Uint8Array() }, notDone(sent.error))
      return sendAnswer(response, answer)
    }
    const delivered = await respond(rule, asked, response, running, { keyless, sent, repeated })
    if (delivered === 'sent') return
    if (cuts < gatewayLimits.redrives) continue
    await running.fail(new Error('The upstream cut its answer, again and again.'))
    return sendAnswer(
      response,
      brokenAnswer(rule, { kind: 'broken', late: false, error: new Error('the answer was cut') }),
    )
  }
}

/** Sends the response of one try, and records it. */
async function respond(
  rule: Rule,
  asked: Asked,
  response: ServerResponse,
  running: Running<unknown>,
  { keyless, sent, repeated }: SentOnce & { readonly keyless: boolean },
): Promise<Delivered> {
  const { problems } = rule
  switch (sent.kind) {
    case 'not-sent': {
      // 1. Nothing has left: the next request may try.
      const detail = `The service cannot be reached, and nothing was sent to it: ${sent.error.message}`
      const answer = problems.write('upstream-unreachable', { detail, retryAfterMs: RETRY_MS })
      await running.finish({ status: answer.status, headers: [], body: new Uint8Array() }, notDone(sent.error))
      sendAnswer(response, answer)
      return 'sent'
    }
    case 'broken': {
      // 2. Something may have. A new error, because the name of the old one could be taken for a proof.
      await running.fail(new Error(`The connection to the upstream broke: ${sent.error.message}`))
      sendAnswer(response, brokenAnswer(rule, sent))
      return 'sent'
    }
    case 'answered': {
      // 3. An answer: its status is the outcome, even when its body is lost.
      const status = sent.answer.statusCode ?? 0
      const inDoubt = repeated && ofThisTry.has(status)
      if (!inDoubt && saysNotDone(rule, status, keyless)) running.context.notDone()
      const { maxAnswerBytes: maxBytes } = rule.route
      const keep = (seen: Captured) => boundTo(rule, asked, seen)
      const recording = inDoubt ? stillInDoubt(running, status) : running
      const repeatable = rule.honoursKeys
      return await deliver({ answer: sent.answer, response, running: recording, maxBytes, keep, repeatable })
    }
  }
}

/** The first pause of a client whose upstream is down. */
const RETRY_MS = 1_000

/** The gateway does not know permissions: what the upstream denies today it may allow tomorrow. */
function saysNotDone({ notDone, honoursKeys }: Rule, status: number, keyless: boolean): boolean {
  if (notDone.has(status) || (honoursKeys && status === IN_USE)) return true
  return status === 401 || status === 403 || status === 404 || (keyless && status >= 400 && status < 500)
}

function brokenAnswer({ problems, honoursKeys }: Rule, { error, late }: Extract<Sent, { kind: 'broken' }>): Answer {
  if (honoursKeys) {
    const detail = `The service did not answer; it can be asked again under the same key: ${error.message}`
    return problems.write('upstream-unreachable', { detail, retryAfterMs: RETRY_MS })
  }
  const detail = `The service did not answer, and the request may have taken effect: ${error.message}`
  return problems.write(late ? 'upstream-late' : 'upstream-broken', { detail })
}

/** The record, with the digest of the credential that may see it. */
function boundTo({ binding }: Rule, asked: Asked, seen: Captured): Captured {
  if (binding === null) return seen
  // An upstream of ours may be a gateway, too: its own word is not the one that counts here.
  const headers = seen.headers.filter(([name]) => name !== binding.header)
  return { ...seen, headers: [...headers, [binding.header, binding.of(asked)]] }
}

function refusal({ problems, route }: Rule, error: unknown, note: Note): Answer {
  if (error instanceof SlowBody) return problems.write('request-too-slow', { detail: error.message })
  if (error instanceof SpoolFull || error instanceof Crowded) return tooBusy(problems, note, error)
  if (error instanceof MissingCaller) {
    const errors = [{ field: error.field, detail: error.message }]
    return problems.write('invalid-request', { detail: error.message, extra: { errors } })
  }
  if (error instanceof NoAuthorizer) {
    return problems.write('upstream-unreachable', { detail: error.message, retryAfterMs: RETRY_MS })
  }
  if (isOnceError(error, 'stopped')) {
    return problems.write('store-unavailable', { detail: 'The gateway is ending.', retryAfterMs: RETRY_MS })
  }
  return route.fault(error)
}

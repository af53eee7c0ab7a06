import { OUTBOX_ROOM } from '../../events/outbox/tables.ts'
import { effectKeyOf, UNIQUE_PREFIX } from '../../ledger/core/identity.ts'
import { HOUR, limits } from '../../ledger/core/limits.ts'
import type { LedgerRecord } from '../../ledger/core/record.ts'
import type { Failure } from '../../ledger/core/verdict.ts'
import { GUARD_PREFIX } from '../../ledger/guard/content-key.ts'
import type { BusyCaller, Repeats, Store } from '../../ledger/store/port.ts'
import type { SqlSeam } from '../../ledger/store/sql.ts'
import type { Card, Moment } from './card.ts'

/** One of the ten questions of the runbook about a key. */
export interface ExplainedAnswer {
  readonly topic: ExplanationTopic
  readonly question: string
  readonly answer: string
  /** An operator should look closer. */
  readonly alarming: boolean
}

export const questions = {
  operation: 'Which operation?',
  caller: 'Which tenant and caller?',
  key: 'Which key?',
  payload: 'The same payload, or another?',
  existed: 'Did a record exist?',
  state: 'Which state, or expired?',
  uniqueness: 'Was business uniqueness violated?',
  outbox: 'Was an outbox event doubled?',
  provider: 'Did a provider get two calls?',
  storm: "A retry storm, or a gateway's retry?",
} as const

export type ExplanationTopic = keyof typeof questions

export interface Explanation {
  readonly record: Card
  readonly answers: readonly ExplainedAnswer[]
  readonly timeline: readonly Moment[]
  readonly guard: GuardDecision | null
}

type Said = Readonly<Record<ExplanationTopic, string | { readonly alarming: string }>>

/** From here on it is no client that repeats itself now and then. */
const STORM_REPEATS = 10
/** Messages of one command that are looked for by their derived ids. */
const MESSAGES_LOOKED_FOR = 100

interface Known {
  readonly has: (room: string) => Promise<boolean>
  /** How often an operator has forgotten it. */
  readonly forgotten: number
  /** False once it has ended: its repeats are not counted any more. */
  readonly isCounted: boolean
}

export async function answersOf(
  store: Store,
  record: LedgerRecord,
  card: Card,
  { has, forgotten, isCounted }: Known,
): Promise<readonly ExplainedAnswer[]> {
  const { identity } = card
  const said: Said = {
    operation: identity.operation,
    caller: `tenant ${identity.tenant}, caller ${identity.caller}`,
    key: identity.batch === undefined ? identity.key : `item ${identity.key} of the batch ${identity.batch}`,
    payload: payloadAnswer(card, isCounted),
    existed: existedAnswer(record, card),
    state: stateAnswer(record, card),
    uniqueness: uniquenessAnswer(record, card),
    outbox: await outboxAnswer(store.sql, record, has),
    provider: providerAnswer(record, card, forgotten),
    storm: stormAnswer(card, isCounted, await busyOf(store, card)),
  }
  return (Object.keys(questions) as ExplanationTopic[]).map((topic) => {
    const answer = said[topic]
    const alarming = typeof answer !== 'string'
    return { topic, question: questions[topic], answer: alarming ? answer.alarming : answer, alarming }
  })
}

function payloadAnswer({ conflicts, fingerprint }: Card, isCounted: boolean): Said['payload'] {
  const recorded = `recorded with the fingerprint ${fingerprint}`
  if (!isCounted) return `${recorded}; it has ended, and refused repeats are counted no more`
  if (conflicts === 0) return `${recorded}; no attempt came with another payload`
  const attempts = conflicts === 1 ? '1 attempt was' : `${conflicts} attempts were`
  return { alarming: `${recorded}; ${attempts} refused for bringing another payload` }
}

function existedAnswer({ state }: LedgerRecord, { claimedAt, expired }: Card): string {
  if (state === 'vacant') return `there was one; its trace is left, and the next attempt is a first one`
  return expired ? `yes, claimed ${iso(claimedAt)}, but its time is over` : `yes, claimed ${iso(claimedAt)}`
}

const NOT_STORED = 'its result could not be kept: retries get outcome_not_stored, over HTTP 409 response-not-stored'

function stateAnswer(record: LedgerRecord, card: Card): Said['state'] {
  const expires =
    card.expiresAt === null ? 'never expires' : `${card.expired ? 'expired' : 'expires'} ${iso(card.expiresAt)}`
  switch (record.state) {
    case 'in_progress':
      return `in progress, attempt ${record.attempts}, lease until ${iso(record.leaseUntil)}`
    case 'succeeded': {
      const succeeded = `succeeded ${iso(record.settledAt)}; ${expires}`
      return record.outcome.kept === 'not_stored' ? { alarming: `${succeeded}; ${NOT_STORED}` } : succeeded
    }
    case 'failed_terminal':
      return `failed for good ${iso(record.settledAt)}: ${card.failure?.message ?? 'no reason kept'}; ${expires}`
    case 'failed_retryable':
      return `failed before its effect ${iso(record.settledAt)}, may be tried again from ${iso(record.retryAt)}; ${expires}`
    case 'unknown':
      return { alarming: `unknown since ${iso(record.since)}: find out whether the effect happened, then resolve it` }
    case 'vacant':
      return record.forgotten
        ? 'forgotten: the next attempt has new effect keys'
        : 'released: free for the next attempt'
  }
}

/** What databases call a value that a unique index has already: PostgreSQL, and SQLite for an index and a primary key. */
const UNIQUE_CODES: readonly string[] = ['23505', '2067', '1555']

/** From what was recorded: a value that was taken, or a code that means it. The words of a failure prove nothing. */
function uniquenessAnswer(record: LedgerRecord, { identity, failure, facts }: Card): Said['uniqueness'] {
  if (identity.operation.startsWith(UNIQUE_PREFIX)) {
    const owner = record.state === 'succeeded' ? record.outcome.data : null
    return `this record is the claim on the value; it belongs to ${owner ?? 'no record'}`
  }
  const recorded = failure === null ? null : failureText(failure)
  if (facts?.taken !== undefined) {
    const why = recorded === null ? '' : ` (${recorded})`
    return { alarming: `it would have been, and was refused: ${facts.taken} stood in the way${why}` }
  }
  if (failure?.code !== undefined && UNIQUE_CODES.includes(failure.code)) {
    return { alarming: `it would have been, and the database refused it: ${recorded}` }
  }
  return recorded === null ? 'no failure is recorded' : `no such conflict is recorded; it failed with ${recorded}`
}

function failureText({ code, message }: Failure): string {
  return code === undefined ? message : `${code}: ${message}`
}

async function outboxAnswer(
  sql: SqlSeam | undefined,
  { id, incarnation }: LedgerRecord,
  rooms: (room: string) => Promise<boolean>,
): Promise<Said['outbox']> {
  if (sql === undefined || !(await rooms(OUTBOX_ROOM))) return 'there is no outbox in this store'
  const ids = Array.from({ length: MESSAGES_LOOKED_FOR }, (_, n) => effectKeyOf(id, incarnation, `outbox:${n}`))
  const count = async (table: string) => {
    const text = `SELECT id, count(*) AS n FROM ${table} WHERE id IN (${ids.map(() => '?').join(', ')}) GROUP BY id`
    const rows = await sql.query<{ n: unknown }>(text, ids)
    return { messages: rows.length, most: rows.reduce((most, { n }) => Math.max(most, Number(n)), 0) }
  }
  const added = await count('onceonly_outbox_ids')
  const waiting = await count('onceonly_outbox_rows')
  const dead = await count('onceonly_outbox_dead')
  if (Math.max(waiting.most, dead.most) > 1) return { alarming: 'yes: a message stands there twice under one id' }
  if (added.messages === 0)
    return 'none is recorded: it added no message through the ledger, or their ids are forgotten'
  const left = `${waiting.messages} wait to be published, ${dead.messages} are dead letters`
  return `no: messages added: ${added.messages}, each under an id that can be added once; ${left}`
}

/** By what the other system recognises two calls as one. */
export function nameOfCall({ effectKey, facts }: Card): string {
  if (facts?.reference !== undefined) return `under the name ${facts.reference}`
  return facts?.provider === undefined ? `under the effect key ${effectKey}` : 'under no key, because it takes none'
}

/** A record that was forgotten begins again without its history, so that the audit is asked, too. */
function providerAnswer(record: LedgerRecord, card: Card, forgotten: number): Said['provider'] {
  const { state, history } = record
  const { calls, effectKey, facts, identity, pointer } = card
  // A lock has an original as soon as it is settled; a route whose key is the content carries out the call itself.
  if (identity.operation.startsWith(GUARD_PREFIX) && (pointer !== null || state === 'in_progress')) {
    return `none by this record, which is a lock on a content; its original is ${pointer?.id ?? 'not known yet'}`
  }
  const who = facts?.provider === undefined ? '' : ` of ${facts.provider}`
  const key = nameOfCall(card)
  if (forgotten > 0 || history.some(({ what }) => what === 'forgotten')) {
    const now = `(now ${effectKey})`
    return {
      alarming: `possibly: it was forgotten by an operator, and attempts since then have new effect keys ${now}`,
    }
  }
  // Of an attempt that vanished, or still runs, it is not recorded how far it came.
  const isBound = state === 'in_progress' || history.some(({ what }) => what === 'lapsed')
  const most = isBound ? 'at most ' : ''
  // What an attempt does not note is counted as one call, and may have been none.
  const isNoted = facts?.provider !== undefined || facts?.extraCalls !== undefined
  const counted = isNoted ? '' : ', counted one per attempt because the effect noted none'
  if (calls === 0) return `no: no call${who} was begun`
  if (calls > 1) {
    const keyed = facts?.provider === undefined || facts.reference !== undefined
    const rest = keyed ? 'one that honours keys did it once' : 'the provider cannot know that they are one'
    const said = isNoted ? 'yes' : 'possibly'
    return { alarming: `${said}: ${most}${calls} calls${who}${counted}, all ${key}; ${rest}` }
  }
  const once = `no: ${most}1 call${who}${counted}, ${key}`
  return state === 'unknown' ? `${once}; whether it took effect is not known` : once
}

function stormAnswer(card: Card, isCounted: boolean, busy: BusyCaller | null): Said['storm'] {
  const repeats = repeatsOf(card)
  const made = busy === null ? 0 : busy.claims + repeatsOf(busy)
  const attempts = made === 1 ? '1 attempt' : `${made} attempts`
  const hour = busy === null ? '' : `; within the hour this caller made ${attempts} on the operation`
  if (!isCounted) return `it has ended, and its repeats are counted no more${hour}`
  if (repeats === 0) return `neither: no repeat is counted for this record${hour}`
  const last = card.repeatedAt === null ? '' : `, the last ${iso(card.repeatedAt)}`
  if (repeats < STORM_REPEATS)
    return `a few retries, as clients and gateways make them: ${repeats === 1 ? '1 repeat' : `${repeats} repeats`}${last}${hour}`
  return { alarming: `a storm: ${repeats} repeats of this one key${last}${hour}` }
}

function repeatsOf({ replays, conflicts, inProgress }: Repeats): number {
  return replays + conflicts + inProgress
}

/** What the content guard decided about a message, or what one of its locks did. */
export interface GuardDecision {
  readonly operation: string
  readonly hash: string
  /** False: it went out without its lock. */
  readonly guarded: boolean
  readonly windowMs: number
  /** By the store's clock; past it an identical content is sent again. */
  readonly windowEndsAt: number
  /** What duplicates are answered with. */
  readonly original: string | null
  /** Duplicates that were answered with the original, or refused while it was on its way. */
  readonly blocked: number
  readonly lastBlockedAt: number | null
}

/** Of a lock itself, and of whatever noted the decision about it; null for every other record. */
export function guardOf(record: LedgerRecord, card: Card): GuardDecision | null {
  const { identity, facts, claimedAt, pointer, repeatedAt: lastBlockedAt } = card
  const blocked = repeatsOf(card)
  if (identity.operation.startsWith(GUARD_PREFIX)) {
    const { retainMs: windowMs } = record.policy
    const lock = { operation: identity.operation, hash: identity.key, guarded: true, windowMs }
    return { ...lock, windowEndsAt: claimedAt + windowMs, original: pointer?.id ?? null, blocked, lastBlockedAt }
  }
  if (facts?.guard === undefined) return null
  const { original = identity.key, since = claimedAt, ...decision } = facts.guard
  return { ...decision, windowEndsAt: since + decision.windowMs, original, blocked, lastBlockedAt }
}

async function busyOf({ queries, clock }: Store, { identity }: Card): Promise<BusyCaller | null> {
  const call = { timeoutMs: limits.storeCallMs }
  const rows = await queries.busiest((await clock.now(call)) - HOUR, limits.pageRows, call)
  const { tenant, caller, operation } = identity
  return rows.find((row) => row.tenant === tenant && row.caller === caller && row.operation === operation) ?? null
}

function iso(at: number): string {
  return new Date(at).toISOString()
}

import { OUTBOX_ROOM } from '../../events/outbox/tables.ts'
import { effectKeyOf, UNIQUE_PREFIX } from '../../ledger/core/identity.ts'
import { HOUR, limits } from '../../ledger/core/limits.ts'
import type { LedgerRecord } from '../../ledger/core/record.ts'
import type { BusyCaller, Store } from '../../ledger/store/port.ts'
import type { SqlSeam } from '../../ledger/store/sql.ts'
import type { Card, Moment } from './card.ts'

/** One of the ten questions that somebody on call asks about a key. */
export interface Answer {
  readonly topic: Topic
  readonly question: string
  readonly answer: string
  /** Somebody should look closer. */
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

export type Topic = keyof typeof questions

export interface Explanation {
  readonly record: Card
  readonly answers: readonly Answer[]
  readonly timeline: readonly Moment[]
}

type Said = Readonly<Record<Topic, string | { readonly alarming: string }>>

/** From here on it is no client that repeats itself now and then. */
const STORM_REPEATS = 10
/** Messages of one command that are looked for by their derived ids. */
const MESSAGES_LOOKED_FOR = 100

interface Known {
  readonly has: (room: string) => Promise<boolean>
  /** How often a person has forgotten it. */
  readonly forgotten: number
  /** False once it has ended: how often it was asked for is not told any more. */
  readonly isCounted: boolean
}

export async function answersOf(
  store: Store,
  record: LedgerRecord,
  card: Card,
  { has, forgotten, isCounted }: Known,
): Promise<readonly Answer[]> {
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
  return (Object.keys(questions) as Topic[]).map((topic) => {
    const answer = said[topic]
    const alarming = typeof answer !== 'string'
    return { topic, question: questions[topic], answer: alarming ? answer.alarming : answer, alarming }
  })
}

function payloadAnswer({ conflicts, fingerprint }: Card, isCounted: boolean): Said['payload'] {
  const recorded = `recorded with the fingerprint ${fingerprint}`
  if (!isCounted) return `${recorded}; it has ended, and who was refused is counted no more`
  if (conflicts === 0) return `${recorded}; nobody has come with another payload, or while it ran`
  const attempts = conflicts === 1 ? '1 attempt was' : `${conflicts} attempts were`
  return {
    alarming:
      `${recorded}; ${attempts} refused, for bringing another payload or coming while it ran. Both are counted ` +
      'together here; the access log tells them apart, as conflict and in_progress',
  }
}

function existedAnswer({ state }: LedgerRecord, { claimedAt, expired }: Card): string {
  if (state === 'vacant') return `there was one; its trace is left, and the next attempt is a first one`
  return expired ? `yes, claimed ${iso(claimedAt)}, but its time is over` : `yes, claimed ${iso(claimedAt)}`
}

function stateAnswer(record: LedgerRecord, card: Card): Said['state'] {
  const expires =
    card.expiresAt === null ? 'never expires' : `${card.expired ? 'expired' : 'expires'} ${iso(card.expiresAt)}`
  switch (record.state) {
    case 'in_progress':
      return `in progress, attempt ${record.attempts}, lease until ${iso(record.leaseUntil)}`
    case 'succeeded':
      return `succeeded ${iso(record.settledAt)}; ${expires}`
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

function uniquenessAnswer(record: LedgerRecord, { identity, failure }: Card): Said['uniqueness'] {
  if (identity.operation.startsWith(UNIQUE_PREFIX)) {
    const owner = record.state === 'succeeded' ? record.outcome.data : null
    return `this record is the claim on the value; it belongs to ${owner ?? 'nobody'}`
  }
  const text = `${failure?.name ?? ''} ${failure?.code ?? ''} ${failure?.message ?? ''}`
  if (/unique|duplicate|23505|already/i.test(text)) return { alarming: `it seems so: ${failure?.message}` }
  return failure === null ? 'no failure is recorded' : `no: ${failure.message}`
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
  if (added.messages === 0) return 'no: this command added none through the ledger, or their ids are forgotten'
  const left = `${waiting.messages} wait to be published, ${dead.messages} are dead letters`
  return `no: messages added: ${added.messages}, each under an id that can be added once; ${left}`
}

/** A record that was forgotten begins anew without its history, so that the audit is asked, too. */
function providerAnswer(
  { state, history }: LedgerRecord,
  { attempts, effectKey }: Card,
  forgotten: number,
): Said['provider'] {
  const key = `under the effect key ${effectKey}`
  if (forgotten > 0 || history.some(({ what }) => what === 'forgotten')) {
    const now = `(now ${effectKey})`
    return { alarming: `possibly: it was forgotten by a person, and attempts since then have new effect keys ${now}` }
  }
  if (attempts > 1) return { alarming: `up to ${attempts}, all ${key}: a provider that honours keys did it once` }
  const once = `one call at the most, ${key}`
  return state === 'unknown' ? `${once}; nobody knows whether it arrived` : once
}

function stormAnswer({ replays, conflicts }: Card, isCounted: boolean, busy: BusyCaller | null): Said['storm'] {
  const repeats = replays + conflicts
  const hour =
    busy === null
      ? ''
      : `; within the hour this caller made ${busy.claims + busy.replays + busy.conflicts} attempts on the operation`
  if (!isCounted) return `it has ended, and its repeats are counted no more${hour}`
  if (repeats === 0) return `neither: no repeat was answered from this record${hour}`
  if (repeats < STORM_REPEATS)
    return `a few retries, as clients and gateways make them: ${repeats === 1 ? '1 repeat' : `${repeats} repeats`}${hour}`
  return { alarming: `a storm: ${repeats} repeats of this one key${hour}` }
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

import { effectKeyOf, recordIdOf } from '../../ledger/core/identity.ts'
import type { Page, RecordView, Store } from '../../ledger/store/port.ts'
import type { Case } from './case.ts'
import { check, same } from './check.ts'
import {
  advance,
  ask,
  CALL,
  claim,
  forget,
  granted,
  identityOf,
  kept,
  kindOf,
  LAPSE_MS,
  newClaimId,
  policies,
  RETAIN_MS,
  refusal,
  resolve,
  settle,
  success,
  unknown,
} from './requests.ts'

const MINUTES = 60_000

async function makeUnknown(store: Store, key: string): Promise<string> {
  const grant = await granted(store, claim(key))
  await ask(store, settle(grant, unknown))
  return grant.id
}

/** What time and people do to a record, and what operators see of it. */
export const operatorCases: readonly Case[] = [
  {
    name: 'reconcile applies what time decided, and nothing else',
    async run({ store }) {
      const a = await granted(store, claim('a'))
      const b = await granted(store, claim('b', { policy: policies.rerun }))
      same(await kindOf(store, { kind: 'reconcile', id: a.id }), 'unchanged', 'a live lease')
      await advance(store, LAPSE_MS)
      const lapsed = await ask(store, { kind: 'reconcile', id: a.id })
      check(lapsed.decision.kind === 'lapsed' && lapsed.record?.state === 'unknown', 'held')
      const free = await ask(store, { kind: 'reconcile', id: b.id })
      check(free.decision.kind === 'lapsed' && free.record?.state === 'failed_retryable', 'free')
      await advance(store, 10 * MINUTES)
      const given = await ask(store, { kind: 'reconcile', id: a.id })
      check(given.decision.kind === 'abandoned' && given.record?.state === 'failed_terminal', 'given up after its time')
      same(await kindOf(store, claim('a')), 'replay_failure', 'and replayed')
    },
  },
  {
    name: 'a probe holds its own fence, once at a time, and leaves the attempt its late word',
    async run({ store }) {
      const grant = await granted(store, claim('a', { policy: policies.probe }))
      await ask(store, settle(grant, unknown))
      const probe = (claimId = newClaimId()) => ({ kind: 'probe', id: grant.id, claimId, leaseMs: 5_000 }) as const
      const first = await ask(store, probe())
      check(first.decision.kind === 'probe_granted' && first.decision.fence > grant.fence, 'granted')
      same(await kindOf(store, probe()), 'unchanged', 'a second prober')
      const cannotTell = { kind: 'cannot_tell', probeAfterMs: MINUTES } as const
      same(
        await kindOf(store, resolve(grant.id, cannotTell, { probeFence: first.decision.fence })),
        'done',
        'cannot tell',
      )
      same(await kindOf(store, probe()), 'unchanged', 'not before its time')
      await advance(store, MINUTES)
      const second = await ask(store, probe())
      check(second.decision.kind === 'probe_granted' && second.decision.probes === 2, 'asked again')
      same(
        await kindOf(store, resolve(grant.id, { kind: 'rerun' }, { probeFence: first.decision.fence })),
        'refused',
        'the old prober',
      )
      same(await kindOf(store, settle(grant, success('"late"'))), 'applied', 'the attempt’s own word')
      same(
        await kindOf(store, resolve(grant.id, { kind: 'rerun' }, { probeFence: second.decision.fence })),
        'refused',
        'too late to probe',
      )
    },
  },
  {
    name: 'resolve: succeeded, failed, rerun; fenced, and only for what is unknown',
    async run({ store }) {
      const id = await makeUnknown(store, 'a')
      const before = (await store.claims.read([id], CALL)).records[0]
      const fence = before?.fence ?? 0
      const stale = await ask(store, resolve(id, { kind: 'rerun' }, { ifFence: fence + 1 }))
      check(stale.decision.kind === 'refused' && stale.decision.why === 'fence_moved', 'another fence')
      const done = await ask(store, resolve(id, { kind: 'succeeded', outcome: kept('7') }, { ifFence: fence }))
      check(done.decision.kind === 'done' && (done.record?.fence ?? 0) > fence, 'the fence rises')
      const replay = await ask(store, claim('a'))
      check(replay.decision.kind === 'replay_success' && replay.decision.outcome.data === '7', 'replayed')
      const again = await ask(store, resolve(id, { kind: 'rerun' }))
      check(again.decision.kind === 'refused' && again.decision.why === 'not_resolvable', 'settled already')
      await ask(store, resolve(await makeUnknown(store, 'b'), { kind: 'failed', outcome: kept('{}') }))
      same(await kindOf(store, claim('b')), 'replay_failure', 'failed')
      await ask(store, resolve(await makeUnknown(store, 'c'), { kind: 'rerun' }))
      same(await kindOf(store, claim('c')), 'reclaimed', 'rerun')
      const none = await ask(store, resolve(recordIdOf(identityOf('absent')), { kind: 'rerun' }))
      check(none.decision.kind === 'refused' && none.decision.why === 'not_found', 'nothing there')
    },
  },
  {
    name: 'forget makes an identity new; release takes a running claim only, and keeps its effect keys',
    async run({ store }) {
      const grant = await granted(store, claim('a'))
      same(await kindOf(store, forget(grant.id, { ifFence: grant.fence + 1 })), 'refused', 'another fence')
      same(await kindOf(store, forget(grant.id, { onlyRunning: true })), 'done', 'release')
      const next = await ask(store, claim('a'))
      check(
        next.decision.kind === 'reclaimed' && next.decision.lease.incarnation === grant.incarnation,
        'the same effect keys',
      )
      await ask(store, settle(next.decision.lease))
      same(await kindOf(store, forget(grant.id, { onlyRunning: true })), 'refused', 'settled is not running')
      same(await kindOf(store, forget(grant.id)), 'done', 'forget')
      same((await store.queries.get(grant.id, CALL)).view, null, 'it is hidden')
      const fresh = await granted(store, claim('a', { fingerprints: ['v1:1:another'] }))
      check(fresh.fence > next.decision.lease.fence && fresh.incarnation === fresh.fence, 'fences only grow')
    },
  },
  {
    name: 'an id finds its records, as whatever they have it',
    async run({ store }) {
      const grant = await granted(store, claim('made'))
      const note = { reference: `it's "100 %_` }
      await ask(store, { ...settle(grant, { ...success(), note }), pointer: { type: 'order', id: 'ord-1' } })
      await granted(store, claim('item', { identity: { ...identityOf('item'), batch: 'batch-1' } }))
      const found = async (mentions: string) => {
        const keys: string[] = []
        let cursor: string | null = null
        do {
          const page: Page<RecordView> = await store.queries.list({ mentions }, { limit: 10, cursor }, CALL)
          keys.push(...page.rows.map(({ record }) => record.identity.key))
          cursor = page.cursor
        } while (cursor !== null)
        return keys.join()
      }
      const { id, incarnation } = grant
      const ids = [
        'made',
        id,
        effectKeyOf(id, incarnation),
        effectKeyOf(id, incarnation, 'bank'),
        'ord-1',
        note.reference,
      ]
      for (const each of ids) same(await found(each), 'made', `by ${each}`)
      same(await found('batch-1'), 'item', 'by its batch')
      for (const each of ['ORD-1', 'ord', '%', 'order', "' OR 1 = 1"]) same(await found(each), '', `not by ${each}`)
    },
  },
  {
    name: 'a unique claim is its owner’s forever',
    async run({ store }) {
      const identity = { tenant: 't', caller: '*', operation: 'unique:ref', key: 'R-1' }
      const unique = (owner: string) =>
        ({ kind: 'unique', id: recordIdOf(identity), identity, claimId: newClaimId(), owner }) as const
      same(await kindOf(store, unique('a')), 'unique_claimed', 'first')
      same(await kindOf(store, unique('a')), 'unique_claimed', 'again by its owner')
      const taken = await ask(store, unique('b'))
      check(taken.decision.kind === 'unique_taken' && taken.decision.owner === 'a', 'taken')
      await advance(store, 365 * 24 * 60 * MINUTES)
      await store.upkeep.sweep(null, 1_000, CALL)
      same(await kindOf(store, unique('b')), 'unique_taken', 'a year later')
    },
  },
  {
    name: 'queries: get, list by filter and cursor, count, lapsed with its low-water mark, unknowns',
    async run({ store }) {
      for (let n = 0; n < 12; n++)
        await ask(store, settle(await granted(store, claim(`done${n}`)), n % 4 === 0 ? refusal() : success()))
      await granted(store, claim('running'))
      await makeUnknown(store, 'lost')
      same(
        await store.queries.count({}, CALL),
        { in_progress: 1, succeeded: 9, failed_terminal: 3, failed_retryable: 0, unknown: 1 },
        'counts',
      )
      const keys: string[] = []
      let cursor: string | null = null
      for (let pages = 0; pages < 20; pages++) {
        const page: Awaited<ReturnType<typeof store.queries.list>> = await store.queries.list(
          { state: 'succeeded' },
          { limit: 4, cursor },
          CALL,
        )
        check(page.rows.length <= 4, 'a page keeps its limit')
        keys.push(...page.rows.map(({ record }) => record.identity.key))
        cursor = page.cursor
        if (cursor === null) break
      }
      same([keys.length, new Set(keys).size, keys[0]], [9, 9, 'done11'], 'every record once, newest first')
      same((await store.queries.list({ key: 'done3' }, { limit: 9, cursor: null }, CALL)).rows.length, 1, 'by key')
      same(
        (await store.queries.unknowns({ limit: 9, cursor: null }, CALL)).rows.map(({ identity }) => identity.key),
        ['lost'],
        'unknowns',
      )
      same((await store.queries.lapsed(0, 9, CALL)).rows.length, 0, 'nothing lapsed yet')
      await advance(store, LAPSE_MS)
      const { rows, next } = await store.queries.lapsed(0, 9, CALL)
      same(
        rows.map(({ identity }) => identity.key),
        ['running'],
        'lapsed',
      )
      await ask(store, { kind: 'reconcile', id: rows[0]?.id ?? '' })
      same((await store.queries.lapsed(next, 9, CALL)).rows.length, 0, 'reconciled')
      const fresh = await granted(store, claim('later'))
      await advance(store, LAPSE_MS)
      same(
        (await store.queries.lapsed(next, 9, CALL)).rows.map(({ id }) => id),
        [fresh.id],
        'the mark hides nothing new',
      )
      same((await store.queries.unknowns({ limit: 9, cursor: null }, CALL)).rows.length, 2, 'both unknown now')
      await advance(store, RETAIN_MS)
      const page = { limit: 9, cursor: null }
      const lists = async (key: string) => {
        const visible = await store.queries.list({ key }, page, CALL)
        const all = await store.queries.list({ key, ended: true }, page, CALL)
        return [visible.rows.length, all.rows.length]
      }
      same(
        [await lists('done3'), await lists('lost')],
        [
          [0, 1],
          [1, 1],
        ],
        'what has expired is listed where it is asked for',
      )
      same(await store.queries.count({ ended: true }, CALL), await store.queries.count({}, CALL), 'and counted nowhere')
    },
  },
]

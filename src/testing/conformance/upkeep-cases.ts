import type { RecordId } from '../../ledger/core/identity.ts'
import type { Case } from './case.ts'
import { check, same } from './check.ts'
import { advance, ask, CALL, claim, granted, kindOf, LAPSE_MS, policies, RETAIN_MS, settle } from './requests.ts'

const WAKE_MS = 3_000

/** Sweeping, counting, waking. */
export const upkeepCases: readonly Case[] = [
  {
    name: 'the sweep removes what is past its end, in bounded steps, and nothing that lives',
    async run({ store }) {
      for (let n = 0; n < 30; n++) await ask(store, settle(await granted(store, claim(`old${n}`))))
      await advance(store, RETAIN_MS)
      for (let n = 0; n < 5; n++) await ask(store, settle(await granted(store, claim(`new${n}`))))
      const running = await granted(store, claim('running'))
      let removed = 0
      let cursor: string | null = null
      for (let steps = 0; steps < 50; steps++) {
        const swept: Awaited<ReturnType<typeof store.upkeep.sweep>> = await store.upkeep.sweep(cursor, 10, CALL)
        check(swept.removed <= 10, 'a step keeps its limit')
        removed += swept.removed
        cursor = swept.cursor
        if (cursor === null) break
      }
      same(removed, 30, 'removed')
      same(await kindOf(store, claim('new0')), 'replay_success', 'the living stay')
      await advance(store, LAPSE_MS)
      same(await kindOf(store, settle(running)), 'applied', 'a running attempt is never swept')
    },
  },
  {
    name: 'fences grow across expiry and sweep',
    async run({ store }) {
      let last = 0
      for (let life = 0; life < 3; life++) {
        const grant = await granted(store, claim('a', { policy: policies.rerun }))
        check(grant.fence > last, `life ${life}`)
        last = grant.fence
        await ask(store, settle(grant))
        await advance(store, RETAIN_MS)
        await store.upkeep.sweep(null, 1_000, CALL)
      }
    },
  },
  {
    name: 'counts of replays, conflicts and callers add up',
    async run({ store }) {
      const grant = await granted(store, claim('a'))
      await ask(store, settle(grant))
      const caller = { tenant: 't', caller: 'c', operation: 'o', claims: 3, replays: 2, conflicts: 1, inProgress: 4 }
      const never = (await store.queries.get(grant.id, CALL)).view
      same([never?.replays, never?.conflicts, never?.inProgress, never?.repeatedAt], [0, 0, 0, null], 'before')
      const record = { id: grant.id, replays: 2, conflicts: 1, inProgress: 4 }
      const since = await store.clock.now(CALL)
      await store.upkeep.tally({ records: [{ ...record, lastAgoMs: 0 }], callers: [caller] }, CALL)
      // An older repeat that is written later does not take the time of the last one back.
      await store.upkeep.tally({ records: [{ ...record, lastAgoMs: 60_000 }], callers: [caller] }, CALL)
      const { view } = await store.queries.get(grant.id, CALL)
      same([view?.replays, view?.conflicts, view?.inProgress], [4, 2, 8], 'of the record')
      const now = await store.clock.now(CALL)
      const last = view?.repeatedAt ?? 0
      same(last >= since - 1_000 && last <= now, true, `the last one at ${last}, between ${since} and ${now}`)
      const [busiest] = await store.queries.busiest(now - 3_600_000, 5, CALL)
      same(busiest, { ...caller, claims: 6, replays: 4, conflicts: 2, inProgress: 8 }, 'of the caller')
      same((await store.queries.busiest(now + 3_600_000, 5, CALL)).length, 0, 'none since the future')
    },
  },
  {
    name: 'a waiter is woken when the attempt attaches a pointer and when it settles, also from another process',
    async run(subject) {
      const { store } = subject
      const elsewhere = (await subject.another?.()) ?? store
      const woken: (readonly RecordId[] | null)[] = []
      let wake: () => void = () => {}
      const watch = store.claims.watch((ids) => {
        woken.push(ids)
        wake()
      })
      await watch.ready
      const grant = await granted(elsewhere, claim('a'))
      same(await kindOf(store, claim('a', { wait: true })), 'in_progress', 'the waiter')
      const { id, claimId, fence } = grant
      const heard = async (what: string, act: () => Promise<unknown>) => {
        woken.length = 0
        const soon = Promise.withResolvers<void>()
        wake = soon.resolve
        const timer = setTimeout(() => soon.reject(new Error(`no waiter was woken: ${what}`)), WAKE_MS)
        try {
          await act()
          if (!woken.some((ids) => ids === null || ids.includes(id))) await soon.promise
        } finally {
          clearTimeout(timer)
        }
      }
      await heard('attach', () =>
        ask(elsewhere, { kind: 'attach', id, claimId, fence, pointer: { type: 'm', id: '1' } }),
      )
      await heard('settle', () => ask(elsewhere, settle(grant)))
      watch.stop()
    },
  },
]

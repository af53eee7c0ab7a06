import type { ClaimRequest } from '../../ledger/core/request.ts'
import type { Store } from '../../ledger/store/port.ts'
import { applyAll } from '../apply-all.ts'
import type { Case, Subject } from './case.ts'
import { check, same } from './check.ts'
import {
  advance,
  ask,
  CALL,
  claim,
  forget,
  granted,
  LAPSE_MS,
  policies,
  RETAIN_MS,
  settle,
  success,
} from './requests.ts'

const RACERS = 24

async function both({ store, another }: Subject): Promise<readonly Store[]> {
  return another === undefined ? [store] : [store, await another()]
}

/** All at once, from every store on the data; a row that lost to a lock is asked again, as the ledger would. */
async function race(stores: readonly Store[], make: () => ClaimRequest): Promise<string[]> {
  const kinds = Array.from({ length: RACERS }, async (_, n) => {
    const request = make()
    const store = stores[n % stores.length] as Store
    for (let tries = 0; ; tries++) {
      try {
        return (await ask(store, request)).decision.kind
      } catch (error) {
        if (tries === 20) throw error
      }
    }
  })
  return Promise.all(kinds)
}

function winners(kinds: readonly string[]): number {
  return kinds.filter((kind) => kind === 'first_attempt' || kind === 'reclaimed').length
}

/** One winner, however many ask at once. */
export const raceCases: readonly Case[] = [
  {
    name: 'many claims at once: one winner at first, after a lapse, after expiry, after forget',
    async run(subject) {
      const stores = await both(subject)
      const { store } = subject
      const make = () => claim('a', { policy: policies.rerun })
      same(winners(await race(stores, make)), 1, 'fresh')
      await advance(store, LAPSE_MS)
      const kinds = await race(stores, make)
      same([winners(kinds), kinds.includes('first_attempt')], [1, false], 'lapsed')
      await advance(store, LAPSE_MS)
      const grant = await granted(store, make())
      await ask(store, settle(grant))
      same(winners(await race(stores, make)), 0, 'settled')
      await advance(store, RETAIN_MS)
      same(winners(await race(stores, make)), 1, 'expired')
      await ask(store, forget(grant.id))
      same(winners(await race(stores, make)), 1, 'forgotten')
    },
  },
  {
    name: 'a batch decides every row as if it were alone, and answers in order',
    async run({ store }) {
      const fresh = Array.from({ length: 60 }, (_, n) => claim(`k${n}`)).sort((a, b) => (a.id < b.id ? -1 : 1))
      const granted1 = await applyAll(store, fresh, CALL)
      const grants = granted1.map((applied, index) => {
        check('decision' in applied && applied.decision.kind === 'first_attempt', `row ${index}`)
        same(applied.decision.lease.claimId, fresh[index]?.claimId, 'in order')
        return applied.decision.lease
      })
      same(new Set(grants.map(({ fence }) => fence)).size, 60, 'every grant has its own fence')
      const mixed = grants.map((grant, n) => {
        if (n % 3 === 0) return settle(grant, success(`${n}`))
        return n % 3 === 1
          ? claim(grant.identity.key)
          : ({ kind: 'renew', id: grant.id, claimId: grant.claimId, fence: grant.fence, leaseMs: 5_000 } as const)
      })
      const answers = await applyAll(store, mixed, CALL)
      for (const [n, applied] of answers.entries()) {
        check('decision' in applied, `row ${n}`)
        same(applied.decision.kind, n % 3 === 1 ? 'in_progress' : 'applied', `row ${n}`)
      }
      const { records } = await store.claims.read([...grants.map(({ id }) => id), '0'.repeat(32)], CALL)
      same(
        records.map((record) => record?.state ?? null),
        [...grants.map((_, n) => (n % 3 === 0 ? 'succeeded' : 'in_progress')), null],
        'read in order',
      )
    },
  },
  {
    name: 'batches of the same records from two processes never stop each other for good',
    async run(subject) {
      const stores = await both(subject)
      const keys = Array.from({ length: 20 }, (_, n) => `k${n}`)
      const batches = Array.from({ length: 10 }, async (_, n) => {
        const batch = keys.map((key) => claim(key)).sort((a, b) => (a.id < b.id ? -1 : 1))
        const store = stores[n % stores.length] as Store
        for (let tries = 0; ; tries++) {
          try {
            return await applyAll(store, batch, CALL)
          } catch (error) {
            if (tries === 20) throw error
          }
        }
      })
      const wins = (await Promise.all(batches))
        .flat()
        .filter((applied) => 'decision' in applied && applied.decision.kind === 'first_attempt')
      same(wins.length, keys.length, 'one grant for each key')
    },
  },
]

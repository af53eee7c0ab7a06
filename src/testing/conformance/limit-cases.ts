import type { Identity } from '../../ledger/core/identity.ts'
import { recordIdOf } from '../../ledger/core/identity.ts'
import { defaults, limits } from '../../ledger/core/limits.ts'
import type { ClaimRequest } from '../../ledger/core/request.ts'
import type { Applied } from '../../ledger/store/port.ts'
import { applyAll } from '../apply-all.ts'
import type { Case } from './case.ts'
import { check, same } from './check.ts'
import { ask, CALL, claim, granted, settle, success } from './requests.ts'

/** As long as a part may be, in characters of three bytes each, with a few that need care in many a language. */
function longPart(tail: string): string {
  const special = `'"\\%_;--\t${tail}`
  return '€'.repeat(Math.floor((limits.identityPartBytes - special.length) / 3)) + special
}

function byId<R extends { readonly id: string }>(requests: readonly R[]): R[] {
  return requests.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

/** Either it was stored as it is, or it was refused: what must never happen is something between. */
function storedOrRefused(applied: Applied<ClaimRequest> | undefined, what: string): void {
  check(applied !== undefined, `${what} has no answer`)
  if ('error' in applied) same([applied.error.code, applied.error.applied], ['row_refused', 'no'], what)
  else same(applied.decision.kind, 'first_attempt', what)
}

/** The largest and the strangest that may be asked of a store. */
export const limitCases: readonly Case[] = [
  {
    name: 'the longest identity and the largest outcome are kept as they are',
    async run({ store }) {
      const parts = { tenant: longPart('1'), caller: longPart('2'), operation: longPart('3'), key: longPart('4') }
      const identity: Identity = { ...parts, batch: longPart('5') }
      const grant = await granted(store, claim('long', { identity }))
      const data = `"${'é'.repeat(defaults.outcomeBytes / 2 - 1)}"`
      const pointer = { type: 'x'.repeat(limits.pointerBytes / 2), id: '😀'.repeat(limits.pointerBytes / 8) }
      await ask(store, { ...settle(grant, success(data)), pointer })
      const { records } = await store.claims.read([recordIdOf(identity)], CALL)
      same(records[0]?.identity, identity, 'the identity')
      same(records[0]?.pointer, pointer, 'the pointer')
      check(records[0]?.state === 'succeeded' && records[0].outcome.data === data, 'the outcome')
    },
  },
  {
    name: 'a full batch is decided at once',
    async run({ store }) {
      const requests = byId(Array.from({ length: limits.batchRows }, (_, index) => claim(`k${index}`)))
      const answers = await applyAll(store, requests, CALL)
      same(answers.length, requests.length, 'one answer each')
      for (const [index, applied] of answers.entries()) storedOrRefused(applied, `row ${index}`)
      same(new Set(answers.map((applied) => 'decision' in applied && applied.record?.id)).size, requests.length, 'rows')
    },
  },
  {
    name: 'a row that cannot be kept fails alone',
    async run({ store }) {
      const good = ['a', 'b', 'c', 'd'].map((key) => claim(key))
      const bad = [claim('key with a NUL \0'), claim('fingerprint', { fingerprints: ['v1:1:\0'] })]
      const requests = byId([...good, ...bad])
      const answers = await applyAll(store, requests, CALL)
      for (const [index, request] of requests.entries()) {
        const applied = answers[index]
        if (bad.includes(request)) storedOrRefused(applied, 'a poisoned row')
        else
          check(
            applied !== undefined && 'decision' in applied && applied.decision.kind === 'first_attempt',
            'a good row',
          )
      }
      const grants = answers.flatMap((applied) =>
        'decision' in applied && 'lease' in applied.decision ? [applied.decision.lease] : [],
      )
      const settles = byId(grants.map((grant, index) => settle(grant, success(index === 0 ? '"\0"' : '"fine"'))))
      for (const [index, applied] of (await applyAll(store, settles, CALL)).entries()) {
        if ('error' in applied)
          same([settles[index]?.grant.id, applied.error.code], [grants[0]?.id, 'row_refused'], 'a settle')
      }
    },
  },
  {
    name: 'what one store writes, another one on the same data reads',
    async run({ store, another }) {
      const grant = await granted(store, claim('a'))
      await ask(store, settle(grant, success('"kept"')))
      if (another === undefined) return
      const second = await another()
      const { decision } = await ask(second, claim('a'))
      check(
        decision.kind === 'replay_success' && decision.outcome.data === '"kept"',
        `the outcome, not ${decision.kind}`,
      )
      const later = await granted(second, claim('b'))
      check(later.fence > grant.fence, 'fences grow over all stores on the same data')
    },
  },
]

import { compareFingerprints } from '../../ledger/core/digest.ts'
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
  kindOf,
  LAPSE_MS,
  later,
  OTHER_PAYLOAD,
  policies,
  RETAIN_MS,
  refusal,
  release,
  settle,
  success,
  unknown,
} from './requests.ts'

/** What a claim is answered in every state, and what a holder may do. */
export const claimCases: readonly Case[] = [
  {
    name: 'a fresh claim is granted with a lease by the store’s clock; a twin gets `in progress`',
    async run({ store }) {
      const before = await store.clock.now(CALL)
      const grant = await granted(store, claim('a'))
      same([grant.attempt, grant.incarnation === grant.fence], [1, true], 'the first grant')
      check(
        grant.leaseUntil - grant.claimedAt === 10_000 && grant.claimedAt >= before,
        'the lease counts from the store’s time',
      )
      same(await kindOf(store, claim('a')), 'in_progress', 'a twin')
      same(await kindOf(store, claim('b')), 'first_attempt', 'another key')
    },
  },
  {
    name: 'our own claim, sent again, is our own grant; after it was settled or given back it is not granted again',
    async run({ store }) {
      const request = claim('a')
      const first = await granted(store, request)
      const again = await granted(store, request)
      same([again.fence, again.attempt, again.claimId], [first.fence, 1, first.claimId], 'the same grant')
      await ask(store, settle(first, later(0)))
      same(await kindOf(store, request), 'retry_later', 'settled meanwhile')
      const other = claim('b')
      await ask(store, release(await granted(store, other)))
      same(await kindOf(store, other), 'retry_later', 'given back meanwhile')
      const lost = claim('c')
      await ask(store, {
        kind: 'release',
        id: lost.id,
        identity: lost.identity,
        claimId: lost.claimId,
        fingerprint: 'v1:1:one',
        policy: lost.policy,
      })
      same(await kindOf(store, lost), 'retry_later', 'given back before it arrived')
      same(await kindOf(store, claim('c')), 'first_attempt', 'another claim')
    },
  },
  {
    name: 'outcomes are replayed as they were written, whatever their text',
    async run({ store }) {
      const texts = [
        '"done"',
        '',
        'ü€😀',
        '\\u0000',
        'x'.repeat(100_000),
        '{"a":[1,2,{"b":null}]}',
        "'; drop table onceonly_records; --",
      ]
      for (const [index, data] of texts.entries()) {
        const grant = await granted(store, claim(`k${index}`))
        same(await kindOf(store, settle(grant, success(data))), 'applied', 'settling')
        const { decision } = await ask(store, claim(`k${index}`))
        check(decision.kind === 'replay_success' && decision.outcome.data === data, `replay of ${data.slice(0, 30)}`)
      }
      const refused = await granted(store, claim('no'))
      await ask(store, settle(refused, refusal()))
      same(await kindOf(store, claim('no')), 'replay_failure', 'a terminal failure')
    },
  },
  {
    name: 'a reused key outranks every other answer and never changes the record',
    async run({ store }) {
      const other = () => claim('a', { fingerprints: [OTHER_PAYLOAD] })
      const grant = await granted(store, claim('a'))
      const read = async () => (await store.claims.read([grant.id], CALL)).records[0]
      for (const prepare of [
        async () => {},
        async () => void (await ask(store, settle(grant, unknown))),
        async () => void (await ask(store, settle(grant, success()))),
      ]) {
        await prepare()
        const before = await read()
        const { decision } = await ask(store, other())
        check(
          decision.kind === 'key_reused' && decision.recorded === 'v1:1:one' && decision.presented === OTHER_PAYLOAD,
          `got ${decision.kind}`,
        )
        same(await read(), before, 'the record')
      }
      same(compareFingerprints('v1:1:one', ['v1:2:x']), 'unverified', 'another shape')
      same(await kindOf(store, claim('a', { fingerprints: ['v1:2:x', 'v1:1:one'] })), 'replay_success', 'an old shape')
      const { decision } = await ask(store, claim('a', { fingerprints: ['v1:2:x'] }))
      check(
        decision.kind === 'replay_success' && !decision.verified,
        'an unknown fingerprint version is replayed, unverified',
      )
      const strict = { fingerprints: ['v1:2:x'], refuseUnverified: true } as const
      same(await kindOf(store, claim('a', strict)), 'key_reused', 'or refused, where the claim asks for that')
      const known = { ...strict, fingerprints: ['v1:2:x', 'v1:1:one'] } as const
      same(await kindOf(store, claim('a', known)), 'replay_success', 'an old shape that is known')
    },
  },
  {
    name: 'a lapsed lease: rerun is reclaimed, hold and probe are unknown, a reservation is free',
    async run({ store }) {
      await granted(store, claim('rerun', { policy: policies.rerun }))
      await granted(store, claim('hold'))
      await granted(store, claim('probe', { policy: policies.probe }))
      await granted(store, claim('reserved', { start: false }))
      await granted(store, claim('window', { policy: policies.window }))
      const attached = await granted(store, claim('attached', { policy: policies.window }))
      await ask(store, {
        kind: 'attach',
        id: attached.id,
        claimId: attached.claimId,
        fence: attached.fence,
        pointer: { type: 'm', id: '1' },
      })
      await advance(store, LAPSE_MS)
      const expected = {
        rerun: 'reclaimed',
        hold: 'outcome_unknown',
        probe: 'outcome_unknown',
        reserved: 'reclaimed',
        window: 'reclaimed',
        attached: 'outcome_unknown',
      }
      for (const [key, kind] of Object.entries(expected)) {
        const policy = key in policies ? policies[key as keyof typeof policies] : policies.hold
        same(await kindOf(store, claim(key, { policy })), kind, key)
      }
    },
  },
  {
    name: 'a lease is not freed before its grace, and a heartbeat moves its end',
    async run({ store }) {
      const grant = await granted(store, claim('a', { policy: policies.rerun }))
      await advance(store, 10_000 + 4_000)
      same(await kindOf(store, claim('a', { policy: policies.rerun })), 'in_progress', 'within the grace')
      const { id, claimId, fence } = grant
      same(await kindOf(store, { kind: 'renew', id, claimId, fence, leaseMs: 10_000 }), 'applied', 'renewing')
      await advance(store, 10_000)
      same(await kindOf(store, claim('a', { policy: policies.rerun })), 'in_progress', 'renewed')
      await advance(store, 6_000)
      same(await kindOf(store, claim('a', { policy: policies.rerun })), 'reclaimed', 'lapsed')
    },
  },
  {
    name: 'a superseded holder changes nothing: settle, renew, start, attach and release',
    async run({ store }) {
      const loser = await granted(store, claim('a', { policy: policies.rerun }))
      await advance(store, LAPSE_MS)
      const winner = await granted(store, claim('a', { policy: policies.rerun }))
      check(
        winner.fence > loser.fence && winner.incarnation === loser.incarnation && winner.attempt === 2,
        'the fence rises',
      )
      const { id, claimId, fence } = loser
      for (const request of [
        { kind: 'renew', id, claimId, fence, leaseMs: 1_000 },
        { kind: 'start', id, claimId, fence, leaseMs: 1_000 },
        { kind: 'attach', id, claimId, fence, pointer: { type: 'x', id: 'y' } },
        release(loser),
        settle(loser, success('"late"')),
        // Half of an owner is no owner.
        settle({ ...winner, claimId: loser.claimId }, success('"late"')),
        settle({ ...winner, fence: loser.fence }, success('"late"')),
      ] as const) {
        same(await kindOf(store, request), 'lease_lost', request.kind)
      }
      same(await kindOf(store, settle(winner, success('"mine"'))), 'applied', 'the winner')
      const late = await ask(store, settle(loser, success('"late"')))
      check(late.decision.kind === 'lease_lost' && late.decision.conflict, 'a late outcome that contradicts the record')
      const { decision, record } = await ask(store, claim('a', { policy: policies.rerun }))
      check(decision.kind === 'replay_success' && decision.outcome.data === '"mine"', 'the record is the winner’s')
      check(
        record?.history.some(({ what, fence: at }) => what === 'superseded' && at === loser.fence) === true,
        'and remembers the loser',
      )
    },
  },
  {
    name: 'settling twice is harmless; a late settle under the current fence counts and resolves the unknown',
    async run({ store }) {
      const grant = await granted(store, claim('a'))
      await ask(store, settle(grant, success('"one"')))
      same(await kindOf(store, settle(grant, success('"two"'))), 'applied', 'again')
      const replay = await ask(store, claim('a'))
      check(
        replay.decision.kind === 'replay_success' && replay.decision.outcome.data === '"one"',
        'the first word stays',
      )
      const late = await granted(store, claim('b'))
      await advance(store, LAPSE_MS)
      same(await kindOf(store, claim('b')), 'outcome_unknown', 'lapsed')
      same(await kindOf(store, settle(late, success('"late"'))), 'applied', 'the late word')
      same(await kindOf(store, claim('b')), 'replay_success', 'resolved')
    },
  },
  {
    name: 'a late settle of a lapsed attempt counts until another claim takes over',
    async run({ store }) {
      const grant = await granted(store, claim('a', { policy: policies.rerun }))
      await advance(store, LAPSE_MS)
      same(await kindOf(store, { kind: 'reconcile', id: grant.id }), 'lapsed', 'reconciling')
      same(await kindOf(store, settle(grant, success('"late"'))), 'applied', 'the late word')
      const { decision } = await ask(store, claim('a', { policy: policies.rerun }))
      check(decision.kind === 'replay_success' && decision.outcome.data === '"late"', `recorded, not ${decision.kind}`)
    },
  },
  {
    name: 'two identities under one id never meet',
    async run({ store }) {
      const { id } = await granted(store, claim('a'))
      const before = (await store.claims.read([id], CALL)).records[0]
      same(await kindOf(store, { ...claim('b'), id }), 'identity_collision', 'a claim')
      const unique = { kind: 'unique', id, identity: identityOf('b'), claimId: claim('b').claimId, owner: 'b' } as const
      same(await kindOf(store, unique), 'identity_collision', 'a unique claim')
      same((await store.claims.read([id], CALL)).records[0], before, 'the record')
    },
  },
  {
    name: 'expiry is decided with the claim, not by the sweep; a refused key leaves a tombstone',
    async run({ store }) {
      const first = await granted(store, claim('new'))
      await ask(store, settle(first))
      await ask(store, settle(await granted(store, claim('refuse', { policy: policies.refuse }))))
      await advance(store, RETAIN_MS - 1_000)
      same(await kindOf(store, claim('new')), 'replay_success', 'inside retention')
      await advance(store, 1_000)
      const fresh = await granted(store, claim('new', { fingerprints: [OTHER_PAYLOAD] }))
      check(
        fresh.attempt === 1 && fresh.fence > first.fence && fresh.incarnation === fresh.fence,
        'a new life with new effect keys',
      )
      same(await kindOf(store, claim('refuse', { policy: policies.refuse })), 'key_expired', 'refused')
      await store.upkeep.sweep(null, 1_000, CALL)
      same(await kindOf(store, claim('refuse', { policy: policies.refuse })), 'key_expired', 'refused after the sweep')
      await advance(store, 5 * 60_000)
      same(await kindOf(store, claim('refuse', { policy: policies.refuse })), 'first_attempt', 'and free in the end')
    },
  },
  {
    name: 'a settle whose record is gone writes it again; a forgotten one does not come back',
    async run({ store }) {
      const ghost = { ...(await granted(store, claim('a'))), id: claim('b').id, identity: identityOf('b') }
      const lost = await ask(store, settle(ghost, success('"kept"')))
      check(lost.decision.kind === 'applied' && lost.decision.recordLost, 'the loss is reported')
      same(await kindOf(store, claim('b')), 'replay_success', 'and mended')
      const grant = await granted(store, claim('c'))
      same(await kindOf(store, forget(grant.id)), 'done', 'forgetting')
      same(await kindOf(store, settle(grant)), 'lease_lost', 'the old holder')
      const next = await granted(store, claim('c'))
      check(next.fence > grant.fence && next.incarnation !== grant.incarnation, 'a new life')
    },
  },
]

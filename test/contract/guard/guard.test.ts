import assert from 'node:assert/strict'
import type { EffectContext } from 'onceonly'
import { createLedger, isOnceError, MINUTE, OnceError, SECOND } from 'onceonly'
import type { GuardEvent } from 'onceonly/guard'
import { onEveryStore, watchClaims } from '../../support/ledger/worlds.ts'
import { guardOver, hello, type Message, pause, sender } from './messages.ts'

onEveryStore(
  'pairs of identical messages, 0 to 350 ms apart, in two processes: one send each',
  async ({ once, second }) => {
    const guards = [guardOver(once), guardOver(await second())]
    const sent: string[] = []
    await Promise.all(
      Array.from({ length: 12 }, async (_, n) => {
        const message = { ...hello, body: `hello ${n}` }
        const [a, b] = await Promise.all([
          guards[0]?.send(message, sender(sent, `a${n}`, 40)),
          pause((n * 350) / 11).then(() => guards[1]?.send(message, sender(sent, `b${n}`, 40))),
        ])
        const kinds = new Set([a?.kind, b?.kind])
        assert.deepEqual(kinds, new Set(['duplicate', 'sent']), `pair ${n}`)
      }),
    )
    assert.equal(sent.length, 12)
  },
)

onEveryStore(
  'the window runs from the claim, is never extended, and parts cannot bleed into each other',
  async ({ world, once }) => {
    const events: GuardEvent<Message>[] = []
    const guard = guardOver(once, { on: (event) => events.push(event) })
    const sent: string[] = []
    assert.deepEqual(await guard.send(hello, sender(sent, 'm1')), { kind: 'sent', value: 'm1' })
    for (const minutes of [2, 8, 4]) {
      await world.advance(minutes * MINUTE)
      const again = await guard.send(hello, sender(sent, 'never'))
      assert.ok(again.kind === 'duplicate' && again.original.id === 'm1', again.kind)
    }
    assert.ok(events.every((event) => event.kind === 'blocked' && event.mode === 'lock_resolved'))
    await world.advance(1 * MINUTE)
    assert.equal((await guard.send(hello, sender(sent, 'm2'))).kind, 'sent')
    const different: Message[] = [
      { ...hello, body: 'hello ' },
      { ...hello, workspace: 'x' },
      { ...hello, phone: '+4911' },
      { ...hello, phone: null, email: '+491' },
      { ...hello, phone: '' },
      { ...hello, phone: null },
      { ...hello, phone: '+491h', body: 'ello' },
    ]
    for (const message of different) assert.equal((await guard.send(message, sender(sent, 'm'))).kind, 'sent')
  },
)

onEveryStore(
  'the loser waits for an original in flight, then refuses; a later retry gets it',
  async ({ world, once, second }) => {
    const events: GuardEvent<Message>[] = []
    const patient = guardOver(once, { waitMs: 100, on: (event) => events.push(event) })
    const other = guardOver(await second())
    const sent: string[] = []
    const begun = Promise.withResolvers<void>()
    const refused = Promise.withResolvers<void>()
    const slow = other.send(hello, async (attempt) => {
      begun.resolve()
      await refused.promise
      return sender(sent, 'm1')(attempt)
    })
    await begun.promise
    assert.deepEqual(await patient.send(hello, sender(sent, 'never')), { kind: 'pending' })
    refused.resolve()
    await slow
    const later = await patient.send(hello, sender(sent, 'never'))
    assert.ok(later.kind === 'duplicate' && later.original.id === 'm1')
    const { store, claimed } = watchClaims(await world.another())
    const longer = guardOver(await second({ store }), { on: (event) => events.push(event) })
    const twice = Promise.withResolvers<void>()
    const again = other.send({ ...hello, body: 'two' }, async (attempt) => {
      twice.resolve()
      await claimed
      return sender(sent, 'm2', 30)(attempt)
    })
    await twice.promise
    const waited = await longer.send({ ...hello, body: 'two' }, sender(sent, 'never'))
    assert.ok(waited.kind === 'duplicate' && waited.waited)
    await again
    assert.deepEqual(sent, ['m1', 'm2'])
    assert.deepEqual(
      events.map((event) => (event.kind === 'blocked' ? event.mode : event.kind)),
      ['pending', 'lock_resolved', 'lock_resolved_polled'],
    )
  },
)

onEveryStore(
  'a send that fails before the original exists holds no lock; afterwards it does',
  async ({ world, once, second }) => {
    const guard = guardOver(once)
    const sent: string[] = []
    await assert.rejects(
      guard.send(hello, () => Promise.reject(new Error('no such lead'))),
      /no such lead/,
    )
    assert.equal((await guard.send(hello, sender(sent, 'm1'))).kind, 'sent')
    const failing = async (attempt: EffectContext | null) => {
      await attempt?.attach({ type: 'message', id: 'm2' })
      throw new Error('provider down')
    }
    const two = { ...hello, body: 'two' }
    await assert.rejects(guard.send(two, failing), /provider down/)
    const duplicate = await guard.send(two, sender(sent, 'never'))
    assert.ok(duplicate.kind === 'duplicate' && duplicate.original.id === 'm2')
    assert.equal(await guard.release({ message: two }), true)
    assert.equal(await guard.release({ tenant: 'w', hash: guard.hashOf(two) }), false)
    assert.equal((await guard.send(two, sender(sent, 'm3'))).kind, 'sent')

    // A holder that dies before the original exists leaves the lock as soon as its lease has lapsed.
    const three = { ...hello, body: 'three' }
    const dead = guardOver(await second(), { name: 'messages' })
    const started = Promise.withResolvers<void>()
    void dead.send(three, () => {
      started.resolve()
      return new Promise(() => {})
    })
    await started.promise
    await world.advance(36 * SECOND)
    assert.equal((await guard.send(three, sender(sent, 'm4'))).kind, 'sent')

    // One that dies after it keeps the original for its window, and not longer.
    const four = { ...hello, body: 'four' }
    const attached = Promise.withResolvers<void>()
    void dead.send(four, async (attempt) => {
      await attempt?.attach({ type: 'message', id: 'm5' })
      attached.resolve()
      return new Promise(() => {})
    })
    await attached.promise
    await world.advance(36 * SECOND)
    const held = await guard.send(four, sender(sent, 'never'))
    assert.ok(held.kind === 'duplicate' && held.original.id === 'm5')
    await world.advance(15 * MINUTE - 36 * SECOND)
    assert.equal((await guard.send(four, sender(sent, 'm6'))).kind, 'sent')
  },
)

onEveryStore(
  'without a reachable store a send continues unguarded, or is refused where it must not',
  async ({ world }) => {
    let broken = true
    const { store } = world
    const lame = {
      ...store,
      claims: {
        ...store.claims,
        apply: (...args: Parameters<typeof store.claims.apply>) =>
          broken
            ? Promise.reject(new OnceError('store_unavailable', 'away', { applied: 'no' }))
            : store.claims.apply(...args),
      },
    } as typeof store
    const ledger = createLedger({ store: lame, background: false })
    const events: GuardEvent<Message>[] = []
    const open = guardOver(ledger, { on: (event) => events.push(event), decideMs: 60 * SECOND })
    const closed = guardOver(ledger, { name: 'closed', onStoreDown: 'closed' })
    const sent: string[] = []
    assert.equal((await open.send(hello, sender(sent, 'm1'))).kind, 'unguarded')
    await assert.rejects(closed.send(hello, sender(sent, 'never')), (error) => isOnceError(error, 'store_unavailable'))
    assert.deepEqual(
      events.map(({ kind }) => kind),
      ['error'],
    )
    broken = false
    assert.equal((await open.send(hello, sender(sent, 'm2'))).kind, 'sent')
    await ledger.stop()
  },
)

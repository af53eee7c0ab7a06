import assert from 'node:assert/strict'
import { cannotTell, final, happened, notDone } from 'onceonly'
import { createAdmin } from 'onceonly/admin'
import { createGuard } from 'onceonly/guard'
import { onEveryStore } from '../../support/ledger/worlds.ts'

const who = (key: string) => ({ tenant: 'acme', caller: 'web', key })

onEveryStore(
  'explain counts the calls that were really begun, of attempts and of probes',
  async ({ once, world: { store } }) => {
    let asked = 0
    const send = once.operation<null>({
      name: 'send',
      effect: 'external',
      probe: async (_identity, { calls }) => {
        calls(1)
        return ++asked < 2 ? cannotTell : happened('sent')
      },
    })
    const admin = createAdmin({ store, ledger: once })
    const explained = async (key: string) => {
      const found = await admin.inspect({ ...who(key), operation: 'send' })
      const answer = found?.answers.find(({ topic }) => topic === 'provider')
      return [found?.record.calls, answer?.answer.split(',')[0], answer?.alarming]
    }
    // One call, as every attempt that says nothing.
    await send.execute(who('plain'), null, async () => 'sent')
    assert.deepEqual(await explained('plain'), [1, 'no: 1 call', false])
    // An attempt that ended before it called, and one that called.
    const before = notDone(new Error('not yet'), { retryAfterMs: 0 })
    await send.execute(who('late'), null, async (attempt) => {
      attempt.note({ calls: 0 })
      throw before
    })
    assert.deepEqual(await explained('late'), [0, 'no: no call was begun', false])
    await send.execute(who('late'), null, async (attempt) => {
      attempt.note({ calls: 1, provider: 'twilio', reference: 'SM1' })
      return 'sent'
    })
    assert.deepEqual(await explained('late'), [1, 'no: 1 call of twilio', false])
    // Three calls within one attempt.
    await send.execute(who('thrice'), null, async (attempt) => {
      for (let calls = 1; calls <= 3; calls++) attempt.note({ calls })
      return 'sent'
    })
    assert.deepEqual(await explained('thrice'), [3, 'yes: 3 calls', true])
    // A lost answer, and a probe that calls again.
    await send.execute(who('lost'), null, () => Promise.reject(new Error('cut')))
    assert.deepEqual(await explained('lost'), [1, 'no: 1 call', false])
    await once.upkeep.reconcile()
    assert.deepEqual(await explained('lost'), [2, 'yes: 2 calls', true])
  },
)

onEveryStore(
  'uniqueness is derived from what was recorded, and not from the text of a failure',
  async ({ once, world: { store } }) => {
    const escalate = once.operation<null>({ name: 'escalate', effect: 'external' })
    const admin = createAdmin({ store, ledger: once })
    const explained = async (key: string) => {
      const found = await admin.inspect({ ...who(key), operation: 'escalate' })
      return found?.answers.find(({ topic }) => topic === 'uniqueness')
    }
    await escalate.execute(who('words'), null, () =>
      Promise.reject(final(new Error('already tried a unique duplicate'))),
    )
    assert.equal((await explained('words'))?.alarming, false, 'words prove nothing')
    const coded = Object.assign(new Error('409'), { code: 'already-escalated' })
    await escalate.execute(who('taken'), null, async (attempt) => {
      attempt.note({ taken: 'ESC-1' })
      throw final(coded)
    })
    const taken = await explained('taken')
    assert.deepEqual(
      [taken?.alarming, /ESC-1.*already-escalated/.test(taken?.answer ?? '')],
      [true, true],
      taken?.answer,
    )
    const refused = Object.assign(new Error('refused'), { code: '23505' })
    await escalate.execute(who('index'), null, () => Promise.reject(final(refused)))
    assert.equal((await explained('index'))?.alarming, true)
  },
)

onEveryStore(
  'an attempt after the end of its record counts as an expired retry, until it is swept',
  async ({ once, events, world }) => {
    const pay = once.operation<null>({ name: 'pay', effect: 'external', retainMs: 60_000 })
    const claims = () =>
      events.flatMap((event) => (event.kind === 'claimed' && event.identity.key === 'k' ? [event.expired] : []))
    await pay.run(who('k'), null, async () => 'paid')
    await world.advance(60_000)
    await pay.run(who('k'), null, async () => 'paid again')
    assert.deepEqual(claims(), [false, true])
    await once.forget({ ...who('k'), operation: 'pay' })
    await pay.run(who('k'), null, async () => 'paid once more')
    assert.deepEqual(claims(), [false, true, false], 'what was forgotten has not expired')
    await world.advance(60_000)
    while ((await once.upkeep.sweep()) > 0);
    await pay.run(who('k'), null, async () => 'paid as new')
    assert.deepEqual(claims(), [false, true, false, false], 'what was swept is not known any more')
  },
)

onEveryStore(
  'a lock counts the duplicates that it met, also those that waited in the process',
  async ({ once, world: { store } }) => {
    const guard = createGuard<string>({ ledger: once, name: 'g', identity: (text) => ['acme', text] })
    const gate = Promise.withResolvers<void>()
    const send = () =>
      guard.send('hello', async (attempt) => {
        await attempt?.attach({ type: 'message', id: 'msg_1' })
        await gate.promise
      })
    const first = send()
    const duplicates = [send(), send(), send()]
    for (const each of duplicates) assert.equal((await each).kind, 'duplicate')
    gate.resolve()
    assert.equal((await first).kind, 'sent')
    assert.equal((await send()).kind, 'duplicate')
    await once.busiest()
    const admin = createAdmin({ store, ledger: once })
    const lock = { tenant: 'acme', caller: '*', operation: 'guard.g', key: guard.hashOf('hello') }
    const found = await admin.inspect(lock)
    assert.deepEqual(
      [found?.guard?.blocked, found?.guard?.guarded, found?.guard?.original, found?.guard?.hash],
      [4, true, 'msg_1', lock.key],
    )
    assert.ok((found?.guard?.lastBlockedAt ?? 0) >= (found?.record.claimedAt ?? 0))
    const storm = found?.answers.find(({ topic }) => topic === 'storm')?.answer
    assert.match(storm ?? '', /4 repeats, the last 20/)
    assert.match(found?.answers.find(({ topic }) => topic === 'provider')?.answer ?? '', /lock on a content.*msg_1/)
  },
)

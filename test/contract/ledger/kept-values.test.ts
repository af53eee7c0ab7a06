import assert from 'node:assert/strict'
import { isOnceError } from 'onceonly'
import { onEveryStore } from '../../support/ledger/worlds.ts'

const who = (key: string) => ({ tenant: 'acme', caller: 'web', key })
const never = () => assert.fail('the effect ran again')

class Money {
  readonly #cents: number
  readonly currency = 'EUR'
  constructor(cents: number) {
    this.#cents = cents
  }
  get cents() {
    return this.#cents
  }
}

const notPlain: readonly [place: string, value: unknown][] = [
  ['$ is a Response', new Response('paid')],
  ['$.error is a Error', { error: new Error('no') }],
  ['$.list[1] is a Headers', { list: [1, new Headers({ a: 'b' })] }],
  ['$ is a URLSearchParams', new URLSearchParams('a=b')],
  ['$.match is a RegExp', { match: /a/ }],
  ['$.price is a Money', { price: new Money(5) }],
]

onEveryStore('a result that is no plain data is handed to its caller, and never replayed as {}', async (bench) => {
  const { once, events } = bench
  const leased = once.operation<null>({ name: 'leased', effect: 'external' })
  const written = once.operation<null>({ name: 'written', effect: 'transaction' })
  for (const [place, value] of notPlain) {
    events.length = 0
    assert.equal(await leased.run(who(place), null, () => value), value)
    await assert.rejects(leased.run(who(place), null, never), (error) => isOnceError(error, 'outcome_not_stored'))
    assert.equal(await written.run(who(place), null, () => value), value)
    await assert.rejects(written.run(who(place), null, never), (error) => isOnceError(error, 'outcome_not_stored'))
    const reasons = events.flatMap((event) => (event.kind === 'outcome_not_stored' ? [event.why] : []))
    assert.equal(reasons.length, 2)
    for (const why of reasons) assert.ok(why.includes(place), why)
  }
})

onEveryStore('dates, bytes, maps, sets and what has a toJSON are plain data', async ({ once }) => {
  const operation = once.operation<null>({ name: 'plain', effect: 'external' })
  const value = {
    at: new Date(0),
    body: Buffer.from('paid'),
    bytes: new Uint8Array([1, 2]),
    map: new Map([['a', new Set([1])]]),
    bare: Object.assign(Object.create(null) as object, { a: 1 }),
  }
  await operation.run(who('k'), null, () => value)
  const replayed = await operation.run<typeof value>(who('k'), null, never)
  assert.deepEqual(replayed, { ...value, bare: { a: 1 } })
  assert.ok(Buffer.isBuffer(replayed.body))
  assert.equal(replayed.body.toString(), 'paid')
  assert.ok(!Buffer.isBuffer(replayed.bytes))
  await operation.run(who('url'), null, () => new URL('https://example.com/'))
  assert.equal(await operation.run(who('url'), null, never), 'https://example.com/')
})

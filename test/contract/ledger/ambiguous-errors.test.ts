import assert from 'node:assert/strict'
import type { Execution } from 'onceonly'
import { singleCall } from 'onceonly'
import { closedUrl } from '../../support/closed-url.ts'
import { onEveryStore } from '../../support/ledger/worlds.ts'

const who = (key: string) => ({ tenant: 'acme', caller: 'web', key })
/** Returns instead of throwing, because a thrown error would also be unknown. */
const mustNotRun = () => 'the effect ran a second time'

function codeOf(execution: Execution<unknown>): string {
  return execution.kind === 'refused' || execution.kind === 'failed' ? execution.error.code : execution.kind
}

/** What `fetch`, `net` and `tls` throw when a connection could not be made. */
const noConnection = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'CERT_HAS_EXPIRED', 'ERR_TLS_CERT_ALTNAME_INVALID']
const thrownFor = (code: string) => Object.assign(new TypeError('fetch failed'), { cause: { code } })

onEveryStore('an effect that charged and then found another service down is unknown', async ({ once }) => {
  const down = await closedUrl()
  const charge = once.operation<null>({ name: 'charge', effect: 'external' })
  let charges = 0
  const first = await charge.execute(who('k'), null, async () => {
    charges++
    await fetch(down)
  })
  assert.equal(codeOf(first), 'outcome_unknown')
  assert.equal(codeOf(await charge.execute(who('k'), null, mustNotRun)), 'outcome_unknown')
  assert.equal(charges, 1)
  for (const code of noConnection) {
    const thrower = () => Promise.reject(thrownFor(code))
    assert.equal(codeOf(await charge.execute(who(code), null, thrower)), 'outcome_unknown', code)
  }
})

onEveryStore(
  'with `classify: singleCall` a connection that was not made proves that nothing was done',
  async (bench) => {
    const { once } = bench
    const down = await closedUrl()
    const charge = once.operation<null>({ name: 'charge', effect: 'external', classify: singleCall })
    assert.equal(codeOf(await charge.execute(who('k'), null, async () => void (await fetch(down)))), 'not_done')
    assert.equal(codeOf(await charge.execute(who('k'), null, () => 'charged')), 'executed')
    for (const code of noConnection) {
      const thrower = () => Promise.reject(thrownFor(code))
      assert.equal(codeOf(await charge.execute(who(code), null, thrower)), 'not_done', code)
    }
    // Sent, and no answer.
    const reset = () => Promise.reject(thrownFor('ECONNRESET'))
    assert.equal(codeOf(await charge.execute(who('reset'), null, reset)), 'outcome_unknown')
  },
)

/** An error object whose every inspection throws. */
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

onEveryStore('whatever an effect throws is settled, also what cannot be inspected', async ({ once }) => {
  const held = { name: 'external', effect: 'external', classify: singleCall, whileRunning: 'conflict' } as const
  const external = once.operation<null>(held)
  const repeatable = once.operation<null>({ name: 'repeatable', effect: 'repeatable', whileRunning: 'conflict' })
  const throwing = () => {
    throw revoked()
  }
  assert.equal(codeOf(await external.execute(who('k'), null, throwing)), 'outcome_unknown')
  assert.equal(codeOf(await external.execute(who('k'), null, mustNotRun)), 'outcome_unknown')
  assert.equal((await once.get({ ...who('k'), operation: 'external' }))?.record.state, 'unknown')
  assert.equal(codeOf(await repeatable.execute(who('k'), null, throwing)), 'not_done')
  assert.equal((await once.get({ ...who('k'), operation: 'repeatable' }))?.record.state, 'failed_retryable')
  const rolledBack = once.operation<null>({ name: 'transaction', effect: 'transaction' })
  await assert.rejects(rolledBack.run(who('k'), null, throwing))
  assert.equal(await rolledBack.run(who('k'), null, () => 'done'), 'done')
})

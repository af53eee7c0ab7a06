import assert from 'node:assert/strict'
import { until } from '../../../../src/testing/until.ts'
import type { GatewayProcess } from '../../gateway/process.ts'
import type { Made } from './trouble.ts'

interface GatewayWorld extends GatewayProcess {
  /** The paths of what the service behind it got, and does not answer. */
  readonly held: readonly string[]
}

/** Makes one case of everything behind a gateway. */
export async function makeAtGateway(gateway: GatewayWorld): Promise<Made<'gateway'>> {
  assert.equal((await gateway.ask({ path: '/cut', key: 'gateway-lost' })).status, 502)
  assert.equal((await gateway.ask({ path: '/pay', key: 'gateway-reused' })).status, 201)
  const other = await gateway.ask({ path: '/pay', key: 'gateway-reused', body: '{"amount":2}' })
  assert.equal(other.problem, 'idempotency-key-reused', other.body)
  return { lostUpstream: 'gateway-lost', reusedAtGateway: 'gateway-reused', ...(await stormGateway(gateway)) }
}

/** More than fifty within five minutes fire the rule about retries, more than twenty the one about copies. */
const RETRIES = 60

async function stormGateway(gateway: GatewayWorld) {
  const storm = async (path: string, key: string | null) => {
    // Answered at the end of the test, when the service goes.
    gateway.ask({ path, key }).catch(() => undefined)
    await until(`the service has ${path}`, () => gateway.held.includes(path))
    const retries = Array.from({ length: RETRIES }, () => gateway.ask({ path, key }))
    for (const { status, body } of await Promise.all(retries)) assert.equal(status, 409, body)
  }
  await storm('/slow', 'gateway-slow')
  await storm('/same', null)
  const pending = () => gateway.lines.find((line) => line.includes('gateway.duplicate_pending'))
  const { lockHash } = JSON.parse(await until('a copy is logged', pending)) as { readonly lockHash: string }
  return { slowUpstream: 'gateway-slow', copiesAtGateway: lockHash }
}

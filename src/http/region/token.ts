import { createHmac, timingSafeEqual } from 'node:crypto'
import { lengthPrefixed } from '../../ledger/core/digest.ts'
import type { Identity } from '../../ledger/core/identity.ts'
import { MINUTE } from '../../ledger/core/limits.ts'

/** The header of a request that one region sends on to another. A request that has it is never sent on again. */
export const REGION_HEADER = 'onceonly-region'

/** Who is behind such a request, as the region that it came to was told. Believed only of one that a region sent on. */
export const CLIENT_HEADER = 'onceonly-client'

/** What a region vouches for. */
export interface Passage {
  readonly from: string
  readonly to: string
  readonly method: string
  readonly target: string
  readonly identity: Identity
}

/** Clocks of regions differ, and a request may wait on its way; an older one is not on its way any more. */
const LONGEST_WAY_MS = 10 * MINUTE

function signature(secret: string, at: string, { from, to, method, target, identity }: Passage): string {
  const { tenant, caller, operation, key } = identity
  const said = lengthPrefixed(['region', 'v1', at, from, to, method, target, tenant, caller, operation, key])
  return createHmac('sha256', secret).update(said).digest('base64url')
}

const encoded = (text: string) => Buffer.from(text).toString('base64url')
const decoded = (text: string) => Buffer.from(text, 'base64url').toString()

/** Says who asks, so that the home need not find out again, and proves that a region says it. */
export function regionToken(secret: string, nowMs: number, passage: Passage): string {
  const { from, to, identity } = passage
  const at = String(nowMs)
  return ['v1', at, from, to, encoded(identity.tenant), encoded(identity.caller), signature(secret, at, passage)].join(
    '.',
  )
}

/** What was seen of a request at the region that got it; tenant and caller are the token's own. */
export type Arrived = Pick<Passage, 'method' | 'target'> & { readonly self: string } & Pick<
    Identity,
    'operation' | 'key'
  >

/** Tenant and caller of a request that a region sent here; null when none did. */
export function readRegionToken(
  secret: string,
  nowMs: number,
  token: string,
  { self, method, target, operation, key }: Arrived,
): { readonly tenant: string; readonly caller: string } | null {
  const [version, at = '', from = '', to = '', tenantText = '', callerText = '', given = '', ...rest] = token.split('.')
  if (version !== 'v1' || rest.length > 0 || to !== self) return null
  const tenant = decoded(tenantText)
  const caller = decoded(callerText)
  const expected = Buffer.from(
    signature(secret, at, { from, to, method, target, identity: { tenant, caller, operation, key } }),
  )
  const actual = Buffer.from(given)
  if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return null
  return Math.abs(nowMs - Number(at)) <= LONGEST_WAY_MS ? { tenant, caller } : null
}

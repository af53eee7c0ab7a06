import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { lengthPrefixed } from '../../ledger/core/digest.ts'
import type { Identity } from '../../ledger/core/identity.ts'
import { MINUTE } from '../../ledger/core/limits.ts'

/** The header of a request that one region sends on to another. A request that has it is never sent on again. */
export const REGION_HEADER = 'onceonly-region'

/**
 * The original client of a forwarded request, as its first region saw it. Trusted only on requests that a region
 * forwarded.
 */
export const CLIENT_HEADER = 'onceonly-client'

/** On a request that a home sends to the former one, which answers it and never sends it on. */
export const FORMER_HEADER = 'onceonly-former-home'

/** A region that was the home of a record, and the one that is its home now. */
export interface HandOver {
  readonly from: string
  readonly to: string
  readonly id: string
}

/** Shows that a region has handed a record over: what a handler answers cannot be taken for that. */
export function handOverProof(secret: string, { from, to, id }: HandOver): string {
  const said = ['handed over', 'v1', from, to, id]
  return createHmac('sha256', secret).update(lengthPrefixed(said)).digest('base64url')
}

/** What a region vouches for. */
export interface Passage {
  readonly from: string
  readonly to: string
  readonly method: string
  readonly target: string
  readonly identity: Identity
  /** A digest of what else the request says: its body, its credentials, the client behind it. */
  readonly content: string
}

/** Clocks of regions differ, and a request may wait on its way; an older one is not on its way any more. */
export const LONGEST_WAY_MS = 2 * MINUTE
const NONCE_BYTES = 12

/** When it was signed, and a number that no other token has. */
interface Moment {
  readonly at: string
  readonly nonce: string
}

function signature(secret: string, { at, nonce }: Moment, passage: Passage): string {
  const { from, to, method, target, identity, content } = passage
  const { tenant, caller, operation, key } = identity
  const said = ['region', 'v2', at, nonce, from, to, method, target, tenant, caller, operation, key, content]
  return createHmac('sha256', secret).update(lengthPrefixed(said)).digest('base64url')
}

const encoded = (text: string) => Buffer.from(text).toString('base64url')
const decoded = (text: string) => Buffer.from(text, 'base64url').toString()

/** Carries tenant and caller, so that the home need not authenticate again, and proves that a region sent them. */
export function regionToken(secret: string, nowMs: number, passage: Passage): string {
  const { from, to, identity } = passage
  const moment = { at: String(nowMs), nonce: randomBytes(NONCE_BYTES).toString('base64url') }
  const who = [encoded(identity.tenant), encoded(identity.caller)]
  return ['v2', moment.at, moment.nonce, from, to, ...who, signature(secret, moment, passage)].join('.')
}

/** What was seen of a request at the region that got it; tenant and caller are the token's own. */
export type Arrived = Pick<Passage, 'method' | 'target' | 'content'> & { readonly self: string } & Pick<
    Identity,
    'operation' | 'key'
  >

/** What a token says of a request. */
export interface Vouched {
  /** The region that sent the request here. */
  readonly from: string
  readonly tenant: string
  readonly caller: string
  /** Seen twice, it marks a replayed token. */
  readonly nonce: string
}

/** Tenant and caller of a request that a region sent here; null when none did. */
export function readRegionToken(secret: string, nowMs: number, token: string, arrived: Arrived): Vouched | null {
  const { self, method, target, operation, key, content } = arrived
  const [version, at = '', nonce = '', from = '', to = '', tenantText = '', callerText = '', given = '', ...rest] =
    token.split('.')
  if (version !== 'v2' || rest.length > 0 || to !== self) return null
  const tenant = decoded(tenantText)
  const caller = decoded(callerText)
  const expected = Buffer.from(
    signature(
      secret,
      { at, nonce },
      { from, to, method, target, identity: { tenant, caller, operation, key }, content },
    ),
  )
  const actual = Buffer.from(given)
  if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return null
  return Math.abs(nowMs - Number(at)) <= LONGEST_WAY_MS ? { from, tenant, caller, nonce } : null
}

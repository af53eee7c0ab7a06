import type { Awaitable, Runtime } from '../runtime/runtime.ts'
import { OnceError } from './core/errors.ts'
import { checkIdentity, recordIdOf, UNIQUE_PREFIX } from './core/identity.ts'
import type { UniqueDecision, UniqueRequest } from './core/request.ts'

export type UniqueAnswer =
  | { readonly kind: 'claimed' }
  | { readonly kind: 'taken'; readonly owner: string; readonly since: number }

export interface UniqueClaim {
  readonly tenant: string
  /** Which value of the business: `payment.merchantReference`. */
  readonly scope: string
  readonly value: string
  /** The same owner may claim again and gets the same answer. */
  readonly owner: string
}

/** Belongs to the tenant, not to a caller: uniqueness holds across callers. */
const EVERY_CALLER = '*'

export async function claimUnique(
  apply: (request: UniqueRequest) => Awaitable<{ readonly decision: UniqueDecision }>,
  runtime: Runtime,
  { tenant, scope, value, owner }: UniqueClaim,
): Promise<UniqueAnswer> {
  const identity = { tenant, caller: EVERY_CALLER, operation: UNIQUE_PREFIX + scope, key: value }
  checkIdentity(identity)
  if (typeof owner !== 'string' || owner === '') throw new OnceError('bad_input', 'A unique claim needs an owner.')
  const request = { kind: 'unique', id: recordIdOf(identity), identity, claimId: runtime.newId(), owner } as const
  const { decision } = await apply(request)
  switch (decision.kind) {
    case 'unique_claimed':
      return { kind: 'claimed' }
    case 'unique_taken':
      return { kind: 'taken', owner: decision.owner, since: decision.since }
    case 'identity_collision':
      throw new OnceError('identity_collision', `Another value shares the record id of ${scope}.`)
  }
}

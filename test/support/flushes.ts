import type { Request } from '../../src/ledger/core/request.ts'
import type { Store } from '../../src/ledger/store/port.ts'
import type { GroupedClaims } from '../../src/ledger/store/request-group.ts'

/** Calls back with the requests of every group commit. False for a store that commits each request by itself. */
export function flushesOf({ claims }: Store, listener: (requests: readonly Request[]) => void): boolean {
  if (!isGrouped(claims)) return false
  claims.onFlush(listener)
  return true
}

function isGrouped(claims: Store['claims']): claims is GroupedClaims {
  return 'onFlush' in claims
}

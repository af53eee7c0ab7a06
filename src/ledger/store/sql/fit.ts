import { OnceError } from '../../core/errors.ts'
import type { Request } from '../../core/request.ts'

/**
 * What the driver would quietly store as something else: half a surrogate pair becomes a replacement character, an
 * object becomes JSON. What the server itself refuses (a NUL character, say) is left to it.
 */
export function unfit(request: Request): OnceError | null {
  switch (request.kind) {
    case 'claim': {
      const { identity, claimId, fingerprints, leaseMs } = request
      const { tenant, caller, operation, key, batch = '' } = identity
      return refused([request.id, tenant, caller, operation, key, batch, claimId, fingerprints[0]], [leaseMs])
    }
    case 'settle': {
      const { grant, to, pointer } = request
      const texts = [request.id, grant.claimId, pointer?.type ?? '', pointer?.id ?? '']
      if (to.state === 'unknown') return refused([...texts, to.reason ?? ''], [grant.fence])
      const delays = to.state === 'failed_retryable' ? [to.retryAfterMs] : []
      return refused([...texts, to.outcome.data ?? ''], [grant.fence, ...delays])
    }
    case 'attach':
      return refused([request.id, request.claimId, request.pointer.type, request.pointer.id], [request.fence])
    case 'start':
    case 'renew':
      return refused([request.id, request.claimId], [request.fence, request.leaseMs])
    case 'release':
    case 'probe':
    case 'unique':
      return refused([request.id, request.claimId], [])
    case 'reconcile':
    case 'resolve':
    case 'forget':
    case 'replace':
      return refused([request.id], [])
  }
}

function refused(texts: readonly unknown[], numbers: readonly unknown[]): OnceError | null {
  for (const text of texts) {
    if (typeof text !== 'string') return rowRefused(`a text is ${text === null ? 'null' : `of type ${typeof text}`}`)
    if (!text.isWellFormed()) return rowRefused('a text contains half a surrogate pair')
  }
  for (const number of numbers) if (!Number.isFinite(number)) return rowRefused(`a number is ${String(number)}`)
  return null
}

function rowRefused(why: string): OnceError {
  return new OnceError('row_refused', `The database cannot keep a value as it is: ${why}.`, { applied: 'no' })
}

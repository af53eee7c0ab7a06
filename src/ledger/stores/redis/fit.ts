import type { OnceError } from '../../core/errors.ts'
import type { Request } from '../../core/request.ts'
import { rowRefused } from './errors.ts'

/** What the format of a record cannot hold: its head is divided by spaces, and its outcome is not escaped. */
export function unfit(request: Request): OnceError | null {
  const claimId = request.kind === 'settle' ? request.grant.claimId : 'claimId' in request ? request.claimId : 'none'
  if (!/^[\x21-\x7e]+$/.test(claimId)) return rowRefused('a claim id is not made of visible ASCII characters')
  if (request.kind !== 'settle') return null
  const text = request.to.state === 'unknown' ? request.to.reason : request.to.outcome.data
  if (text !== null && !text.isWellFormed()) return rowRefused('an outcome contains half a surrogate pair')
  return null
}

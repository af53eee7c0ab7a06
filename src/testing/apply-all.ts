import { isOnceError } from '../ledger/core/errors.ts'
import type { Request } from '../ledger/core/request.ts'
import type { Applied, Call, Store } from '../ledger/store/port.ts'

/** Sends all requests at once, as many callers would. Answers in their order; what fails is answered by its error. */
export function applyAll<R extends Request>(
  { claims }: Pick<Store, 'claims'>,
  requests: readonly R[],
  call: Call,
): Promise<Applied<R>[]> {
  return Promise.all(
    requests.map(async (request): Promise<Applied<R>> => {
      try {
        return await claims.apply(request, call)
      } catch (error) {
        if (isOnceError(error)) return { error }
        throw error
      }
    }),
  )
}

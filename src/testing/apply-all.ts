import { isOnceError } from '../ledger/core/errors.ts'
import type { DecisionOf, Request } from '../ledger/core/request.ts'
import type { Applied, AppliedDecision, Call, Store } from '../ledger/store/port.ts'

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

/** One request, always with a promise: also where the store answers or refuses at once. */
export async function applyTo<R extends Request>(
  { claims }: Pick<Store, 'claims'>,
  request: R,
  call: Call,
): Promise<AppliedDecision<DecisionOf<R>>> {
  return claims.apply(request, call)
}

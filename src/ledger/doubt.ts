import { OnceError } from './core/errors.ts'

/** The same error, of a call whose earlier try may have taken effect: "no" would not be true of the whole. */
export function inDoubt(fault: OnceError): OnceError {
  if (fault.applied === 'maybe') return fault
  const { code, message, retryable, applied, next, details, retryAfterMs } = fault
  const options = {
    cause: fault,
    applied: 'maybe',
    details,
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
  } as const
  // The message already has the advice, where it has one.
  return new OnceError(code, message, options, { retryable, applied, next, inMessage: false })
}

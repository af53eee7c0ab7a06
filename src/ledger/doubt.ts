import { OnceError } from './core/errors.ts'

/** The same error, of a call whose earlier try may have taken effect: "no" would not be true of the whole. */
export function inDoubt(fault: OnceError): OnceError {
  if (fault.applied === 'maybe') return fault
  const { code, message, next, details, retryAfterMs } = fault
  // The advice is added to every message; it must not be there twice.
  const text = message.endsWith(` ${next}`) ? message.slice(0, -next.length - 1) : message
  return new OnceError(code, text, {
    cause: fault,
    applied: 'maybe',
    details,
    ...(retryAfterMs === null ? {} : { retryAfterMs }),
  })
}

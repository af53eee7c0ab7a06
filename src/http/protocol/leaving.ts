import type { Answer } from './exchange.ts'
import type { ProblemWriter } from './problem-writer.ts'

/** Follows a signal until `stop`. */
export function untilBegun(signal: AbortSignal | undefined): { readonly signal: AbortSignal; stop(): void } {
  const controller = new AbortController()
  if (signal === undefined) return { signal: controller.signal, stop: () => {} }
  const leave = () => controller.abort(signal.reason)
  if (signal.aborted) leave()
  else signal.addEventListener('abort', leave, { once: true })
  return { signal: controller.signal, stop: () => signal.removeEventListener('abort', leave) }
}

/** A client that is gone does not read it; a function that has to end in time sends it. */
export function hungUp(problems: ProblemWriter): Answer {
  return problems.write('retry-later', { detail: 'The request ended while it waited for its turn.' })
}

import { OnceError } from '../../ledger/core/errors.ts'
import { unknownOption } from '../../ledger/core/nearest.ts'
import { foreignNames, kindOf } from '../../ledger/core/option-names.ts'
import type { Incoming } from './exchange.ts'

export function refuseOption(option: string, message: string): never {
  throw new OnceError('bad_option', message, { details: { option } })
}

export function refuseUnknown(what: string, given: object, known: readonly string[]): void {
  const unknown = unknownOption(given, known, foreignNames)
  if (unknown !== null) refuseOption(unknown.name, `${what} has no option \`${unknown.name}\`. ${unknown.advice}`)
}

/** `who` returned no caller; nothing is claimed yet. */
export function refuseWho(who: unknown, { method, target }: Pick<Incoming, 'method' | 'target'>): never {
  return refuseOption(
    'who',
    `\`who\` returned ${who === null ? 'null' : typeof who} for ${method} ${pathOf(target)}: return { tenant, caller }, or refuse unauthenticated requests before protect.`,
  )
}

/** For adapters: the body is gone, so a retry with another body would look like the same request. */
export function bodyConsumed({ method, target }: Pick<Incoming, 'method' | 'target'>, advice: string): OnceError {
  const message = `The body of ${method} ${pathOf(target)} was read before protect could fingerprint it: ${advice}.`
  return new OnceError('bad_option', message)
}

function pathOf(target: string): string {
  return target.split('?')[0] ?? target
}

/** Refuses a route without a handler when it is declared, and not with its first request. */
export function checkHandler(definition: { readonly name?: string }, handler: unknown): void {
  if (typeof handler === 'function') return
  const route = `The route ${definition.name ?? 'without a name'}`
  refuseOption('handler', `${route} needs a handler, the last argument of protect: a function, not ${kindOf(handler)}.`)
}

import type { BeginOptions, CallOptions } from './begin.ts'
import type { ClaimOptions } from './claim.ts'
import { OnceError } from './core/errors.ts'
import { checkOptionNames, kindOf } from './core/option-names.ts'
import type { EffectKind } from './definition.ts'

/** The arguments of calls are checked before anything is claimed. */

export function checkEffect(method: string, effect: unknown): void {
  if (typeof effect !== 'function') wrong(method, `needs an effect: a function, not ${kindOf(effect)}`)
}

const callOptions = ['signal', 'as', 'decideMs'] satisfies (keyof CallOptions)[]
const beginOptions = [...callOptions, 'reserve', 'fingerprints'] satisfies (keyof BeginOptions)[]

export function checkCallOptions(
  method: string,
  options: CallOptions | BeginOptions,
  known: readonly string[] = callOptions,
): void {
  // Looked at one by one, because almost every call is right and the search for the nearest name takes its time.
  if (typeof options !== 'object' || options === null) checkOptionNames(`\`${method}\``, options, known)
  for (const name in options) if (!known.includes(name)) checkOptionNames(`\`${method}\``, options, known)
  const { signal, decideMs } = options
  if (signal !== undefined && typeof signal?.throwIfAborted !== 'function')
    wrong(method, 'takes an AbortSignal as `signal`')
  if (decideMs !== undefined && !isDuration(decideMs))
    wrong(method, 'takes a number of milliseconds from 0 as `decideMs`')
}

export function checkBeginOptions({ effect }: { readonly effect: EffectKind }, options: BeginOptions): void {
  checkCallOptions('begin', options, beginOptions)
  if (options.reserve === true && effect === 'transaction')
    wrong('begin', 'reserves no transaction: leave `reserve` out')
}

export function checkClaimOptions(options: ClaimOptions): void {
  checkOptionNames('`claim`', options, ['reserve', 'waitMs', 'claimsAgain'] satisfies (keyof ClaimOptions)[])
  if (!isDuration(options.waitMs)) wrong('claim', 'takes a number of milliseconds from 0 as `waitMs`')
}

function isDuration(ms: number | undefined): boolean {
  return ms === undefined || (typeof ms === 'number' && ms >= 0)
}

function wrong(method: string, what: string): never {
  throw new OnceError('bad_option', `\`${method}\` ${what}. Nothing was claimed.`)
}

/** @param caller the function that was given something as its `store` */
export function checkStore(caller: string, store: unknown): void {
  if (isObject(store) && isObject(store['claims']) && typeof store['claims']['apply'] === 'function') return
  throw new OnceError('bad_option', `${storeProblem(caller, store)}`, { details: { option: 'store' } })
}

/** The likeliest first mistake of all: the names of its members would say nothing. */
export function refuseStoreAsOptions(options: unknown): void {
  if (!isObject(options) || !isObject(options['claims'])) return
  const text = 'createLedger was given a store as its options. Name it: createLedger({ store }).'
  throw new OnceError('bad_option', text, { details: { option: 'store' } })
}

function storeProblem(caller: string, store: unknown): string {
  const given = `The \`store\` of ${caller} is ${kindOf(store)}`
  if (typeof store === 'string') return `${given}. Make a store of it: sqliteStore(path) or postgresStore(pool).`
  if (isLedger(store)) return `The \`store\` of ${caller} is a ledger. Give the store that the ledger was made with.`
  if (isObject(store) && typeof store['query'] === 'function')
    return `The \`store\` of ${caller} is a database client. Make a store of it: postgresStore(pool).`
  return `${given}. Give one of postgresStore(pool), sqliteStore(path), redisStore(client) and memoryStore().`
}

/** @param caller the function that was given something as its `ledger` */
export function checkLedger(caller: string, ledger: unknown): void {
  if (isLedger(ledger)) return
  const isStore = isObject(ledger) && isObject(ledger['claims'])
  const given = isStore ? 'a store' : kindOf(ledger)
  const text = `The \`ledger\` of ${caller} is ${given}. Make a ledger: createLedger({ store }).`
  throw new OnceError('bad_option', text, { details: { option: 'ledger' } })
}

function isLedger(value: unknown): boolean {
  return isObject(value) && typeof value['operation'] === 'function'
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

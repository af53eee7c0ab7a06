import { OnceError } from './core/errors.ts'
import { kindOf } from './core/option-names.ts'

/** The arguments of calls are checked before anything is claimed. */

export function checkEffect(method: string, effect: unknown): void {
  if (typeof effect === 'function') return
  throw wrongCall(method, `needs an effect: a function, not ${kindOf(effect)}`)
}

export function wrongCall(method: string, what: string): OnceError {
  return new OnceError('bad_option', `\`${method}\` ${what}. Nothing was claimed.`)
}

/** @param caller the function that was given something as its `store` */
export function checkStore(caller: string, store: unknown): void {
  if (isObject(store) && isObject(store['claims']) && typeof store['claims']['apply'] === 'function') return
  throw new OnceError('bad_option', `${storeProblem(caller, store)}`, { details: { option: 'store' } })
}

/** The likeliest first mistake of all: the names of its members would say nothing. */
export function checkLedgerOptions(options: unknown): void {
  const isOptions = isObject(options)
  if (isOptions && !isObject(options['claims'])) return
  const text = isOptions
    ? 'createLedger was given a store as its options. Name it: createLedger({ store }).'
    : `createLedger takes its options as an object, { store }, not as ${kindOf(options)}.`
  throw new OnceError('bad_option', text, { details: { option: 'store' } })
}

function storeProblem(caller: string, store: unknown): string {
  const given = `The \`store\` of ${caller} is ${kindOf(store)}`
  if (typeof store === 'string') return `${given}. Make a store of it: sqliteStore(path) or postgresStore(pool).`
  if (isLedger(store)) return `The \`store\` of ${caller} is a ledger. Give the store that the ledger was made with.`
  if (isObject(store) && typeof store['query'] === 'function')
    return `The \`store\` of ${caller} is a database client. Make a store of it: postgresStore(pool).`
  return `${given}. Give one of postgresStore(pool), sqliteStore(path), mariadbStore(pool), redisStore(client) and memoryStore().`
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

import { OnceError } from '../../core/errors.ts'
import { checkOptionNames, kindOf } from '../../core/option-names.ts'

/**
 * Encrypts what a store keeps: responses, keys, callers, fingerprints, messages, inputs and results.
 *
 * @example
 * ```ts
 * import { randomBytes } from 'node:crypto'
 * import { createLedger } from 'onceonly'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * // Keep the key in a secret manager: without it nothing can be read, and the store refuses to start.
 * const store = sqliteStore('orders.db', { encryption: { keys: { k1: randomBytes(32) } } })
 * const once = createLedger({ store })
 * await once.stop()
 * ```
 */
export interface Encryption {
  /** The keys by their ids, 32 random bytes each. All of them can be read with. */
  readonly keys: Readonly<Record<string, Uint8Array>>
  /** The id of the key that writes. @default the only key */
  readonly writeWith?: string
  /**
   * Accepts a store that has records from before encryption, until `onceonly rekey` has encrypted them. Stop every process
   * that has no keys first: it would not see what is written from now on.
   * @default false
   */
  readonly allowPlain?: boolean
  /**
   * Ids of keys that are lost for good. What they encrypted answers `outcome_not_stored`; no command of it runs again.
   * @default []
   */
  readonly lost?: readonly string[]
}

/** Options that were checked. */
export interface CheckedEncryption {
  readonly keys: ReadonlyMap<string, Uint8Array>
  readonly writeWith: string
  readonly allowPlain: boolean
  readonly lost: readonly string[]
}

const KEY_BYTES = 32
/** Ids stand in every encrypted value: short, and without the characters that divide its parts. */
const KEY_ID = /^[A-Za-z0-9_-]{1,32}$/

export function checkEncryption(given: Encryption): CheckedEncryption {
  checkOptionNames('`encryption`', given, ['keys', 'writeWith', 'allowPlain', 'lost'])
  const { keys, allowPlain = false, lost = [] } = given
  if (typeof keys !== 'object' || keys === null || Array.isArray(keys)) {
    bad('keys', `must be an object of keys by their ids, not ${kindOf(keys)}: \`{ keys: { k1: randomBytes(32) } }\``)
  }
  const checked = new Map<string, Uint8Array>()
  for (const [id, key] of Object.entries(keys)) checked.set(checkKeyId(id), checkKey(id, key))
  const [first] = checked.keys()
  if (first === undefined) bad('keys', 'has no key: `{ keys: { k1: randomBytes(32) } }`')
  const writeWith = given.writeWith ?? first
  if (given.writeWith === undefined && checked.size > 1) {
    bad('writeWith', `is missing, and there are several keys: name the one that writes, one of ${listed(checked)}`)
  }
  if (!checked.has(writeWith)) bad('writeWith', `is \`${writeWith}\`, which is not among the keys: ${listed(checked)}`)
  if (typeof allowPlain !== 'boolean') bad('allowPlain', `must be true or false, not ${kindOf(allowPlain)}`)
  if (!Array.isArray(lost) || lost.some((id) => typeof id !== 'string' || checked.has(id))) {
    bad('lost', 'must be a list of ids of keys that are not among `keys`')
  }
  return { keys: checked, writeWith, allowPlain, lost }
}

function checkKeyId(id: string): string {
  if (KEY_ID.test(id)) return id
  return bad('keys', `has the id \`${id}\`: an id is 1 to 32 letters, digits, \`-\` and \`_\``)
}

function checkKey(id: string, key: unknown): Uint8Array {
  if (!(key instanceof Uint8Array))
    bad('keys', `has no bytes for \`${id}\` but ${kindOf(key)}: use \`Buffer.from(text, 'base64')\``)
  if (key.byteLength !== KEY_BYTES) bad('keys', `has ${key.byteLength} bytes for \`${id}\`, not ${KEY_BYTES}`)
  if (key.every((byte) => byte === key[0])) bad('keys', `has ${KEY_BYTES} equal bytes for \`${id}\`: use random ones`)
  return Uint8Array.from(key)
}

function listed(keys: ReadonlyMap<string, unknown>): string {
  return [...keys.keys()].map((id) => `\`${id}\``).join(', ')
}

function bad(option: string, what: string): never {
  throw new OnceError('bad_option', `\`encryption\` option \`${option}\` ${what}.`, { details: { option } })
}

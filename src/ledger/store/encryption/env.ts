import { readFileSync } from 'node:fs'
import { OnceError } from '../../core/errors.ts'
import type { Encryption } from './options.ts'
import { checkEncryption } from './options.ts'

/** The variables that `encryptionFromEnv` reads. */
const encryptionVariables = {
  keys: 'ONCEONLY_ENCRYPTION_KEYS',
  file: 'ONCEONLY_ENCRYPTION_KEYS_FILE',
  writeWith: 'ONCEONLY_ENCRYPTION_WRITE_WITH',
  allowPlain: 'ONCEONLY_ENCRYPTION_ALLOW_PLAIN',
  lost: 'ONCEONLY_ENCRYPTION_LOST',
} as const

type Env = Readonly<Record<string, string | undefined>>

/**
 * The option `encryption` of a store, from environment variables, as the server, the gateway and the command `onceonly`
 * read them; undefined where no keys are given. `ONCEONLY_ENCRYPTION_KEYS` is `k1=BASE64,k2=BASE64`, or
 * `ONCEONLY_ENCRYPTION_KEYS_FILE` names a file with one `k1=BASE64` on each line; `ONCEONLY_ENCRYPTION_WRITE_WITH` names the
 * key that writes. Refuses what is malformed, without repeating it.
 *
 * @example
 * ```ts
 * import { createLedger, encryptionFromEnv } from 'onceonly'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const encryption = encryptionFromEnv(process.env)
 * const once = createLedger({ store: sqliteStore('orders.db', encryption && { encryption }) })
 * await once.stop()
 * ```
 */
export function encryptionFromEnv(env: Env): Encryption | undefined {
  const { keys: variable, file, writeWith, allowPlain, lost } = encryptionVariables
  const valueOf = (name: string) => env[name]?.trim() || undefined
  const [inline, path] = [valueOf(variable), valueOf(file)]
  if (inline !== undefined && path !== undefined) refuse(file, `is set beside ${variable}: use one of them`)
  const text = path === undefined ? inline : readKeys(file, path)
  if (text === undefined) {
    const alone = [writeWith, allowPlain, lost].find((name) => valueOf(name) !== undefined)
    if (alone !== undefined) refuse(alone, `is set, and neither ${variable} nor ${file} is`)
    return undefined
  }
  const given: Encryption = {
    keys: keysOf(path === undefined ? variable : file, text),
    ...(valueOf(writeWith) === undefined ? {} : { writeWith: valueOf(writeWith) as string }),
    allowPlain: yesNo(allowPlain, valueOf(allowPlain) ?? 'no'),
    lost: (valueOf(lost) ?? '').split(',').flatMap((id) => (id.trim() === '' ? [] : [id.trim()])),
  }
  checkEncryption(given)
  return given
}

function readKeys(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    return refuse(variable, `cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

function keysOf(variable: string, text: string): Record<string, Uint8Array> {
  const keys: Record<string, Uint8Array> = Object.create(null)
  const lines = text.split(/[\n,]/).map((line) => line.trim())
  for (const line of lines.filter((each) => each !== '' && !each.startsWith('#'))) {
    const at = line.indexOf('=')
    const id = line.slice(0, at).trim()
    if (at < 1) refuse(variable, 'has an entry that is not `id=BASE64`, such as `k1=` and 32 random bytes in base64')
    if (id in keys) refuse(variable, `has the key \`${id}\` twice`)
    keys[id] = bytesOf(variable, id, line.slice(at + 1).trim())
  }
  return keys
}

function bytesOf(variable: string, id: string, text: string): Uint8Array {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  if (/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) return Buffer.from(text, 'base64')
  return refuse(variable, `has a key \`${id}\` that is neither base64 nor hexadecimal`)
}

function yesNo(variable: string, text: string): boolean {
  if (text === 'yes' || text === 'no') return text === 'yes'
  return refuse(variable, 'is neither yes nor no')
}

function refuse(variable: string, what: string): never {
  throw new OnceError('bad_option', `${variable} ${what}.`, { details: { option: variable } })
}

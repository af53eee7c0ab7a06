import type { KeyObject } from 'node:crypto'
import { createCipheriv, createDecipheriv, createHmac, createSecretKey, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { CheckedEncryption } from './options.ts'

/**
 * Encrypted texts. There are two kinds:
 *
 * - `~<store>.<key id>.<…>`: AES-256-GCM under one of the configured keys, with its place as associated data. The nonce
 *   is an HMAC of place and text, so that writing the same again gives the same bytes: a repeated settle is recognised.
 * - `~<store>~<…>`: under the store's own index key, for what is compared: an HMAC as the initial vector, then AES-256-CTR.
 *   Equal texts of one place are equal, and nothing can be guessed without the key.
 *
 * `<store>` is derived from the index key: no input from outside can look like an encrypted text of this store.
 */
export interface Box {
  /** What every encrypted text of this store begins with. */
  readonly mark: string
  seal(text: string, place: string): string
  /** Null where it cannot be opened: another place, another key, or changed bytes. */
  open(sealed: string, place: string): string | null
  /** For what is compared. */
  token(text: string, place: string): string
  openToken(token: string, place: string): string | null
  /** A record id under which it is stored, and back. */
  hideId(id: string): string
  showId(hidden: string): string
  /** The id of the key that sealed a text; null where it is none of ours. */
  keyOf(text: string): string | null
}

const NONCE_BYTES = 12
const TAG_BYTES = 16
const IV_BYTES = 16
const MARK_CHARS = 8

export function deriveKey(key: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', `onceonly ${purpose}`, 32))
}

interface SealKey {
  readonly cipher: KeyObject
  readonly nonce: KeyObject
}

function mac(key: KeyObject, place: string, text: string, bytes: number): Buffer {
  return createHmac('sha256', key).update(`${place.length}:${place}`).update(text).digest().subarray(0, bytes)
}

/** @param of what it is for; texts of another purpose have another mark, and are left alone */
export function createBox(
  { keys, writeWith }: Pick<CheckedEncryption, 'keys' | 'writeWith'>,
  indexKey: Uint8Array,
  of: 'records' | 'rows',
): Box {
  const own = (purpose: string) => createSecretKey(deriveKey(indexKey, purpose))
  const mark = `~${deriveKey(indexKey, `mark of ${of}`).toString('base64url').slice(0, MARK_CHARS)}`
  const sealKeys = new Map<string, SealKey>()
  for (const [id, key] of keys) {
    const derived = (purpose: string) => createSecretKey(deriveKey(key, purpose))
    sealKeys.set(id, { cipher: derived('seal'), nonce: derived('nonce') })
  }
  const writer = sealKeys.get(writeWith) as SealKey
  const prefix = `${mark}.${writeWith}.`
  const tokenMac = own('token mac')
  const tokenCipher = own('token cipher')
  const tokenPrefix = `${mark}~`
  const idKey = deriveKey(indexKey, 'id')
  // One block at a time, each on its own: the ciphers can be kept.
  const hide = createCipheriv('aes-256-ecb', idKey, null).setAutoPadding(false)
  const show = createDecipheriv('aes-256-ecb', idKey, null).setAutoPadding(false)

  function keyOf(text: string): string | null {
    if (!text.startsWith(mark) || text[mark.length] !== '.') return null
    const end = text.indexOf('.', mark.length + 1)
    return end === -1 ? null : text.slice(mark.length + 1, end)
  }

  return {
    mark,
    keyOf,
    seal(text, place) {
      const nonce = mac(writer.nonce, place, text, NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', writer.cipher, nonce)
      cipher.setAAD(Buffer.from(place))
      const body = [nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]
      return prefix + Buffer.concat(body).toString('base64url')
    },
    open(sealed, place) {
      const id = keyOf(sealed)
      const key = id === null ? undefined : sealKeys.get(id)
      if (id === null || key === undefined) return null
      const bytes = Buffer.from(sealed.slice(mark.length + id.length + 2), 'base64url')
      if (bytes.byteLength < NONCE_BYTES + TAG_BYTES) return null
      const decipher = createDecipheriv('aes-256-gcm', key.cipher, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      })
      decipher.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(-TAG_BYTES))
      try {
        const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES))
        return Buffer.concat([text, decipher.final()]).toString('utf8')
      } catch {
        return null
      }
    },
    token(text, place) {
      const iv = mac(tokenMac, place, text, IV_BYTES)
      const cipher = createCipheriv('aes-256-ctr', tokenCipher, iv)
      return tokenPrefix + Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final()]).toString('base64url')
    },
    openToken(token, place) {
      if (!token.startsWith(tokenPrefix)) return null
      const bytes = Buffer.from(token.slice(tokenPrefix.length), 'base64url')
      if (bytes.byteLength < IV_BYTES) return null
      const iv = bytes.subarray(0, IV_BYTES)
      const decipher = createDecipheriv('aes-256-ctr', tokenCipher, iv)
      const text = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES)), decipher.final()]).toString('utf8')
      return timingSafeEqual(mac(tokenMac, place, text, IV_BYTES), iv) ? text : null
    },
    hideId: (id) => hide.update(id, 'hex', 'hex'),
    showId: (hidden) => show.update(hidden, 'hex', 'hex'),
  }
}

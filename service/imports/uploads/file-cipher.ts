import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { Encryption } from 'onceonly'
import { Unreadable } from '../parse/entry.ts'

/**
 * Uploaded files on the disk, encrypted with the keys of the store. A file is a line that names its key, a random salt, and
 * blocks of AES-256-GCM. The number of a block and whether it is the last are part of its nonce, so that blocks cannot be
 * moved or left out; the file's name is associated data, so that it opens under no other.
 */
export interface FileCipher {
  encrypt(content: AsyncIterable<Uint8Array>, name: string): AsyncIterable<Uint8Array>
  /** A file from before encryption passes as it is. @throws Unreadable */
  decrypt(content: AsyncIterable<Uint8Array>, name: string): AsyncIterable<Uint8Array>
}

const MAGIC = 'onceonly-encrypted-1 '
const SALT_BYTES = 16
const BLOCK_BYTES = 64 * 1024
const TAG_BYTES = 16
const NONCE_BYTES = 12
/** The line in front is never longer. */
const HEAD_BYTES_MOST = 64

export const plainFiles: FileCipher = { encrypt: (content) => content, decrypt: (content) => content }

export function createFileCipher(encryption: Encryption | null): FileCipher {
  if (encryption === null) return plainFiles
  const { keys } = encryption
  const writeWith = encryption.writeWith ?? Object.keys(keys)[0] ?? ''

  function keyOf(id: string, salt: Uint8Array): Buffer {
    const key = Object.hasOwn(keys, id) ? keys[id] : undefined
    if (key === undefined) throw new Unreadable(`was encrypted with the key ${id}, which is not configured`)
    return Buffer.from(hkdfSync('sha256', key, salt, 'onceonly file', 32))
  }

  return {
    async *encrypt(content, name) {
      const salt = randomBytes(SALT_BYTES)
      const key = keyOf(writeWith, salt)
      yield Buffer.concat([Buffer.from(`${MAGIC}${writeWith}\n`), salt])
      let number = 0
      for await (const { block, last } of blocksOf(content, BLOCK_BYTES)) {
        const cipher = createCipheriv('aes-256-gcm', key, nonceOf(number++, last)).setAAD(Buffer.from(name))
        yield Buffer.concat([cipher.update(block), cipher.final(), cipher.getAuthTag()])
      }
    },
    async *decrypt(content, name) {
      const { id, salt, rest, plain } = await headOf(content)
      if (plain) {
        yield* rest
        return
      }
      const key = keyOf(id, salt)
      let number = 0
      for await (const { block, last } of blocksOf(rest, BLOCK_BYTES + TAG_BYTES)) {
        const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(number++, last)).setAAD(Buffer.from(name))
        decipher.setAuthTag(block.subarray(-TAG_BYTES))
        try {
          yield Buffer.concat([decipher.update(block.subarray(0, -TAG_BYTES)), decipher.final()])
        } catch {
          throw new Unreadable('cannot be decrypted: it was changed, or its key is another one')
        }
      }
    },
  }
}

function nonceOf(number: number, last: boolean): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES)
  nonce.writeUIntBE(number, 4, 6)
  nonce.writeUInt8(last ? 1 : 0, NONCE_BYTES - 1)
  return nonce
}

/** Of equal size but the last, which may be empty. */
async function* blocksOf(
  content: AsyncIterable<Uint8Array>,
  bytes: number,
): AsyncIterable<{ readonly block: Buffer; readonly last: boolean }> {
  let waiting: Buffer = Buffer.alloc(0)
  for await (const chunk of content) {
    waiting = waiting.length === 0 ? Buffer.from(chunk) : Buffer.concat([waiting, chunk])
    while (waiting.length > bytes) {
      yield { block: waiting.subarray(0, bytes), last: false }
      waiting = waiting.subarray(bytes)
    }
  }
  yield { block: waiting, last: true }
}

interface Head {
  readonly plain: boolean
  readonly id: string
  readonly salt: Uint8Array
  readonly rest: AsyncIterable<Uint8Array>
}

async function headOf(content: AsyncIterable<Uint8Array>): Promise<Head> {
  const chunks = content[Symbol.asyncIterator]()
  let head: Buffer = Buffer.alloc(0)
  let done = false
  while (!done && head.length < HEAD_BYTES_MOST + SALT_BYTES) {
    const next = await chunks.next()
    done = next.done === true
    if (next.done !== true) head = Buffer.concat([head, next.value])
  }
  async function* after(start: Buffer): AsyncIterable<Uint8Array> {
    yield start
    if (!done) for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value
  }
  const line = head.subarray(0, HEAD_BYTES_MOST).indexOf('\n')
  if (line === -1 || !head.subarray(0, line).toString('latin1').startsWith(MAGIC)) {
    return { plain: true, id: '', salt: Buffer.alloc(0), rest: after(head) }
  }
  const id = head.subarray(MAGIC.length, line).toString('latin1')
  const salt = head.subarray(line + 1, line + 1 + SALT_BYTES)
  return { plain: false, id, salt, rest: after(head.subarray(line + 1 + SALT_BYTES)) }
}

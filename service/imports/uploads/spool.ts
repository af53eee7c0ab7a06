import { createHash, randomUUID } from 'node:crypto'
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { HOUR } from 'onceonly'

/** Content on its way into a storage, in a file of this machine: whole, and known by its digest. */
export interface Spooled extends AsyncDisposable {
  readonly path: string
  /** SHA-256, in hex. */
  readonly digest: string
  readonly bytes: number
}

/** What is written instead of the content; digest and size are of the content. */
type Encrypt = (content: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>

export interface Spool {
  /** Null when it is longer than a file may be. */
  take(content: AsyncIterable<Uint8Array>, encrypt?: Encrypt): Promise<Spooled | null>
  /** A new name in its folder. */
  draft(): string
  tidy(): Promise<void>
}

/** Modes of what is made here: uploads are for the server alone. */
export const OWNER_ONLY = { folder: 0o700, file: 0o600 } as const

/** No upload takes as long, so a file that was begun before has no writer. */
const LEFT_BEHIND_MS = 24 * HOUR

export async function openSpool(folder: string, bytesMost: number): Promise<Spool> {
  await mkdir(folder, { recursive: true, mode: OWNER_ONLY.folder })
  const draft = () => join(folder, randomUUID())
  return {
    draft,
    async take(content, encrypt = (plain) => plain) {
      const path = draft()
      const remove = () => rm(path, { force: true })
      try {
        const written = await write(path, content, encrypt, bytesMost)
        if (written !== null) return { path, ...written, [Symbol.asyncDispose]: remove }
        await remove()
        return null
      } catch (error) {
        await remove()
        throw error
      }
    },
    async tidy() {
      for (const name of await readdir(folder)) {
        const path = join(folder, name)
        // Another process may have removed it meanwhile.
        const changedAt = await stat(path).then(
          ({ mtimeMs }) => mtimeMs,
          () => Date.now(),
        )
        if (Date.now() - changedAt > LEFT_BEHIND_MS) await rm(path, { force: true })
      }
    },
  }
}

/** On the disk before it is answered. */
async function write(
  path: string,
  content: AsyncIterable<Uint8Array>,
  encrypt: Encrypt,
  bytesMost: number,
): Promise<{ readonly digest: string; readonly bytes: number } | null> {
  await using handle = await open(path, 'wx', OWNER_ONLY.file)
  const hash = createHash('sha256')
  let bytes = 0
  async function* measured(): AsyncIterable<Uint8Array> {
    for await (const chunk of content) {
      bytes += chunk.length
      if (bytes > bytesMost) return
      hash.update(chunk)
      yield chunk
    }
  }
  for await (const chunk of encrypt(measured())) await handle.appendFile(chunk)
  if (bytes > bytesMost) return null
  await handle.sync()
  return { digest: hash.digest('hex'), bytes }
}

/** Of a whole content. */
export async function digestOf(
  content: AsyncIterable<Uint8Array>,
): Promise<{ readonly digest: string; readonly bytes: number }> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of content) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { digest: hash.digest('hex'), bytes }
}

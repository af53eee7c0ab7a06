import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { access, link, mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { HOUR } from 'onceonly'

/** A file that is stored for good, byte by byte. */
export interface StoredFile {
  /** Of the content: the same bytes have the same tag. */
  readonly etag: string
  readonly bytes: number
}

export type Stored =
  | { readonly kind: 'stored'; readonly file: StoredFile }
  /** It was there before, with the same content. */
  | { readonly kind: 'same'; readonly file: StoredFile }
  /** It was there before, with other content, which stays. */
  | { readonly kind: 'other'; readonly file: StoredFile }
  | { readonly kind: 'too_large' }

/** Files by search and name in a folder of this machine. A file is there whole or not at all, and never changes. */
export interface Storage {
  /** Of the folder, whoever opens it. */
  readonly id: string
  put(searchId: string, name: string, content: AsyncIterable<Uint8Array>): Promise<Stored>
  has(searchId: string, name: string): Promise<boolean>
  /** Null when there is none. */
  look(searchId: string, name: string): Promise<StoredFile | null>
  read(searchId: string, name: string): AsyncIterable<Uint8Array>
  /** Removes what broken uploads left behind. */
  tidy(): Promise<void>
}

/** A hundred thousand references with their abstracts fit. */
export const UPLOAD_BYTES_MOST = 512 * 1024 * 1024
/** No upload takes as long, so nobody is writing a file that was begun before. */
const LEFT_BEHIND_MS = 24 * HOUR

export async function openStorage(folder: string, bytesMost = UPLOAD_BYTES_MOST): Promise<Storage> {
  const unfinished = join(folder, 'unfinished')
  await mkdir(unfinished, { recursive: true })
  await syncFolder(folder)

  const id = await idOf(folder, join(unfinished, randomUUID()))

  /** Hashes, so that a path is never made of what somebody sent, and names may be as long and as odd as they like. */
  const folderOf = (searchId: string) => join(folder, digest(searchId))
  const pathOf = (searchId: string, name: string) => join(folderOf(searchId), digest(name))

  async function look(searchId: string, name: string): Promise<StoredFile | null> {
    const hash = createHash('sha256')
    let bytes = 0
    try {
      for await (const chunk of createReadStream(pathOf(searchId, name))) {
        hash.update(chunk)
        bytes += chunk.length
      }
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null
      throw error
    }
    return { etag: hash.digest('hex'), bytes }
  }

  /** Gives the finished file its name, unless another one has it: a link, because a rename would put it aside. */
  async function publish(path: string, searchId: string, name: string, file: StoredFile): Promise<Stored> {
    await mkdir(folderOf(searchId), { recursive: true })
    await syncFolder(folder)
    try {
      await link(path, pathOf(searchId, name))
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
      const there = await look(searchId, name)
      if (there === null) throw error
      return { kind: there.etag === file.etag ? 'same' : 'other', file: there }
    }
    await syncFolder(folderOf(searchId))
    return { kind: 'stored', file }
  }

  return {
    id,
    async put(searchId, name, content) {
      const path = join(unfinished, randomUUID())
      try {
        const file = await write(path, content, bytesMost)
        return file === null ? { kind: 'too_large' } : await publish(path, searchId, name, file)
      } finally {
        await rm(path, { force: true })
      }
    },
    has: (searchId, name) =>
      access(pathOf(searchId, name)).then(
        () => true,
        () => false,
      ),
    look,
    read: (searchId, name) => createReadStream(pathOf(searchId, name)),
    async tidy() {
      for (const name of await readdir(unfinished)) {
        const path = join(unfinished, name)
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

/** Made by the first who opens the folder: a link, so that nobody reads half of it. */
async function idOf(folder: string, draft: string): Promise<string> {
  const path = join(folder, 'id')
  try {
    await writeFile(draft, randomUUID())
    await link(draft, path)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
  return await readFile(path, 'utf8')
}

/** On the disk before it is answered; null when it is longer than a file may be. */
async function write(path: string, content: AsyncIterable<Uint8Array>, bytesMost: number): Promise<StoredFile | null> {
  await using handle = await open(path, 'wx')
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of content) {
    bytes += chunk.length
    if (bytes > bytesMost) return null
    hash.update(chunk)
    await handle.appendFile(chunk)
  }
  await handle.sync()
  return { etag: hash.digest('hex'), bytes }
}

/** A new name is on the disk only when its folder is. */
async function syncFolder(path: string): Promise<void> {
  await using handle = await open(path, 'r')
  await handle.sync()
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

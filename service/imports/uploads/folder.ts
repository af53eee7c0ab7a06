import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { link, mkdir, open, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SECOND } from 'onceonly'
import { type FileCipher, plainFiles } from './file-cipher.ts'
import { BUCKET, locateAnywhere } from './notification.ts'
import { digestOf, OWNER_ONLY, openSpool, type Spooled } from './spool.ts'
import { FileMissing, type Storage, type Stored, type StoredFile, UPLOAD_BYTES_MOST, type Upload } from './storage.ts'

const LOOK_EVERY_MS = 5 * SECOND
/** Another file is in the folder, or there is none. */
const KEPT_FOLDER: ReadonlySet<unknown> = new Set(['ENOTEMPTY', 'EEXIST', 'ENOENT'])

export interface FolderOptions {
  readonly bytesMost?: number
  readonly cipher?: FileCipher
}

/** Files in a folder, which the servers of one store share. Their ETag is their SHA-256. */
export async function openFolder(
  folder: string,
  { bytesMost = UPLOAD_BYTES_MOST, cipher = plainFiles }: FolderOptions = {},
): Promise<Storage> {
  const spool = await openSpool(join(folder, 'unfinished'), bytesMost)
  await syncFolder(folder)

  /** Hashes, so that a path is never made of what a client sent, and names may be as long and as odd as they like. */
  const folderOf = ({ searchId }: Upload) => join(folder, digest(searchId))
  const pathOf = (upload: Upload) => join(folderOf(upload), digest(upload.name))

  /** A file opens under its own name alone. */
  const nameOf = ({ searchId, name }: Upload) => `${searchId}/${name}`
  const contentOf = (upload: Upload) => cipher.decrypt(createReadStream(pathOf(upload)), nameOf(upload))

  async function look(upload: Upload): Promise<StoredFile | null> {
    try {
      const { digest: etag, bytes } = await digestOf(contentOf(upload))
      return { etag, bytes, version: null }
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null
      throw error
    }
  }

  /** Gives the finished file its name, unless another one has it: a link, because a rename would put it aside. */
  async function publish({ path, digest: etag, bytes }: Spooled, upload: Upload): Promise<Stored> {
    await mkdir(folderOf(upload), { recursive: true, mode: OWNER_ONLY.folder })
    await syncFolder(folder)
    try {
      await link(path, pathOf(upload))
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error
      const there = await look(upload)
      if (there === null) throw error
      return { kind: there.etag === etag ? 'same' : 'other', file: there }
    }
    await syncFolder(folderOf(upload))
    return { kind: 'stored', file: { etag, bytes, version: null } }
  }

  return {
    kind: 'folder',
    title: 'the folder of uploads',
    bucket: BUCKET,
    lookEveryMs: LOOK_EVERY_MS,
    id: () => idOf(folder, spool.draft()),
    keyOf: ({ searchId, name }) => `imports/${searchId}/${name}`,
    locate: ({ key }) => locateAnywhere(key),
    async put(upload, content) {
      await using spooled = await spool.take(content, (plain) => cipher.encrypt(plain, nameOf(upload)))
      return spooled === null ? { kind: 'too_large' } : await publish(spooled, upload)
    },
    look,
    async *read(upload, { etag }) {
      // A server that does not share the folder may have accepted other content, and then that counts.
      if ((await look(upload))?.etag !== etag)
        throw new FileMissing(`${upload.name} is not in the folder of this server`)
      yield* contentOf(upload)
    },
    discard: (upload) => rm(pathOf(upload), { force: true }),
    async remove(upload) {
      await rm(pathOf(upload), { force: true })
      // The last file of an import takes its folder along.
      await rmdir(folderOf(upload)).catch((error: unknown) => {
        if (!KEPT_FOLDER.has(codeOf(error))) throw error
      })
    },
    direct: async () => null,
    async examine() {
      const path = spool.draft()
      await writeFile(path, '', { mode: OWNER_ONLY.file })
      await rm(path)
    },
    tidy: spool.tidy,
  }
}

/** Made by the first who opens the folder: a link, so that no process reads half of it. */
async function idOf(folder: string, draft: string): Promise<string> {
  const path = join(folder, 'id')
  try {
    await writeFile(draft, randomUUID(), { mode: OWNER_ONLY.file })
    await link(draft, path)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
  return await readFile(path, 'utf8')
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

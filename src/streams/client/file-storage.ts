import { type FileHandle, open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { BaseError } from '../../ledger/core/base-error.ts'
import { createClientStorage, type OpenClientStorage } from './client-storage.ts'
import { type FileLock, lockFile } from './file-lock.ts'
import { applyChanges, type Changes, type KeyValues } from './key-values.ts'

/** The file is rewritten when it has grown to this many bytes and holds mostly removed values. */
const REWRITE_BYTES = 256 * 1_024
/** Twice as large as what is kept: rewriting costs, on average, no more than the writes did. */
const REWRITE_FACTOR = 2

interface Waiting {
  readonly changes: Changes
  resolve(): void
  reject(error: unknown): void
}

/**
 * Client storage for Node, in a file of its own, for one process at a time: a second process gets `storage_taken`. A killed
 * process leaves no lock behind. A copied file makes a clone, which the regions detect.
 *
 * @example
 * ```ts
 * import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
 * import { createFileStorage } from 'onceonly/stream/server'
 *
 * const client = await createStreamClient({
 *   room: 'lobby',
 *   regions: ['eu'],
 *   transport: createWebSocketTransport({ url: () => 'wss://eu.example.com/socket' }),
 *   receiver: { message: (entry) => console.log(entry.body) },
 *   mode: 'at-least-once',
 *   storage: createFileStorage({ path: 'bot.json' }),
 * })
 * ```
 */
export function createFileStorage(options: { readonly path: string }): OpenClientStorage {
  return createClientStorage(openFile(options))
}

/**
 * A file with a line for each write. What is written together is synced together, so that a burst of sends costs one
 * sync; a line that a crash cut off was never acknowledged, and is left out.
 */
function openFile({ path }: { readonly path: string }): KeyValues {
  const kept = new Map<string, unknown>()
  const queue: Waiting[] = []
  let opened: Promise<FileHandle> | null = null
  let file: FileHandle | null = null
  let lock: FileLock | null = null
  let bytes = 0
  let flying: Promise<void> | null = null
  let stopped = false

  function ready(): Promise<FileHandle> {
    opened ??= begin().catch((error: unknown) => {
      opened = null
      throw error
    })
    return opened
  }

  async function begin(): Promise<FileHandle> {
    lock ??= await lockFile(path)
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return ''
      throw error
    })
    for (const changes of readLines(text)) applyChanges(kept, changes)
    // A file of our own from the start: whatever a crash left at its end is gone.
    return rewrite()
  }

  /** Beside it first, then in its place: a crash leaves the old file or the new one. */
  async function rewrite(): Promise<FileHandle> {
    const beside = `${path}.new`
    const fresh = await open(beside, 'w', 0o600)
    const line = `${JSON.stringify({ put: Object.fromEntries(kept) })}\n`
    await fresh.appendFile(line)
    await fresh.datasync()
    await rename(beside, path)
    await syncFolder(dirname(path))
    await file?.close()
    file = fresh
    bytes = Buffer.byteLength(line)
    return fresh
  }

  async function drain(): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.splice(0)
      try {
        const handle = await ready()
        const lines = batch.map(({ changes }) => `${JSON.stringify(changes)}\n`).join('')
        await handle.appendFile(lines)
        await handle.datasync()
        bytes += Buffer.byteLength(lines)
        for (const { changes } of batch) applyChanges(kept, changes)
        if (bytes > REWRITE_BYTES && bytes > REWRITE_FACTOR * sizeOf(kept)) await (opened = rewrite())
        for (const { resolve } of batch) resolve()
      } catch (error) {
        // Half a line may stand there now, and nothing may be added behind it: the next write begins a new file.
        opened = null
        for (const { reject } of batch) reject(error)
      }
    }
    flying = null
  }

  return {
    async load() {
      await ready()
      return new Map(kept)
    },
    write(changes) {
      if (stopped)
        return Promise.reject(
          new BaseError('stopped', 'The storage of this client was stopped.', { next: 'Open it again.' }),
        )
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      queue.push({ changes, resolve, reject })
      flying ??= Promise.resolve().then(drain)
      return promise
    },
    async stop() {
      stopped = true
      await flying
      await opened?.catch(() => null)
      await file?.close()
      file = null
      lock?.release()
      lock = null
    },
  }
}

/** Up to the first line that is not whole: behind it nothing was ever acknowledged. */
function* readLines(text: string): Generator<Changes> {
  for (const line of text.split('\n')) {
    if (line === '') return
    try {
      yield JSON.parse(line) as Changes
    } catch {
      return
    }
  }
}

function sizeOf(kept: ReadonlyMap<string, unknown>): number {
  let size = 0
  for (const [name, value] of kept) size += name.length + JSON.stringify(value).length
  return size
}

/** The name of a file is durable only when its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

import { createHash, randomUUID } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { clientDefaults } from '../../ledger/core/limits.ts'
import { badOption, checkOptions } from '../../ledger/core/option-names.ts'
import type { KeyStorage } from './key.ts'

export interface FileKeysOptions {
  /** Made when it is missing. Processes may share it. */
  readonly folder: string
  /** Keys older than this, in milliseconds, are removed when the place is opened: no server remembers them. @default 30 days */
  readonly keepMs?: number
}

/**
 * One file for each intent. It is written aside and put in place by a link, which fails where a file is already: so a key
 * is there as a whole or not at all, and of two processes with one intent the second gets the key of the first.
 *
 * @example
 * ```ts
 * import { createClient } from 'onceonly/client'
 * import { openFileKeys } from 'onceonly/client-file'
 *
 * const client = createClient({ keys: await openFileKeys({ folder: 'keys' }) })
 * await client.send('https://api.example.com/orders', { method: 'POST', intent: 'cart-17/order', body: 'tea' })
 * ```
 */
export async function openFileKeys(options: FileKeysOptions): Promise<KeyStorage> {
  checkOptions('openFileKeys', options, { folder: true, keepMs: true } satisfies Record<keyof FileKeysOptions, true>)
  const { folder, keepMs = clientDefaults.keepKeysMs } = options
  if (typeof folder !== 'string' || folder === '') badOption('File keys', 'folder', 'must be the path of a folder')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await removeOld(folder, keepMs)
  const fileOf = (intent: string) => join(folder, createHash('sha256').update(intent).digest('hex'))
  return {
    keep: async (intent, key) => {
      const file = fileOf(intent)
      const aside = `${file}.${randomUUID()}`
      await write(aside, key)
      try {
        await link(aside, file)
        await sync(folder)
        return key
      } catch (error) {
        if ((error as { code?: unknown }).code !== 'EEXIST') throw error
        return await readFile(file, 'utf8')
      } finally {
        await rm(aside, { force: true })
      }
    },
    drop: (intent) => rm(fileOf(intent), { force: true }),
  }
}

async function write(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The name of a file is kept by its folder. */
async function sync(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function removeOld(folder: string, keepMs: number): Promise<void> {
  for (const name of await readdir(folder)) {
    const file = join(folder, name)
    const found = await stat(file).catch(() => null)
    if (found !== null && /^[0-9a-f]{64}/.test(name) && found.mtimeMs < Date.now() - keepMs)
      await rm(file, { force: true })
  }
}

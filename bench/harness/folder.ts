import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder for the files of one round, gone when the round is over. */
export interface Folder {
  file(name: string): string
  [Symbol.dispose](): void
}

export function createFolder(): Folder {
  const path = mkdtempSync(join(tmpdir(), 'onceonly-bench-'))
  return {
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  }
}

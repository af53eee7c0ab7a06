import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'

const root = join(import.meta.dirname, '..')

/** What the pages are made with, beside the files that they are made of. */
const always = ['package-lock.json', 'console/vite.config.ts', 'console/build.ts', 'console/stamp.ts']

type Stamp = Readonly<Record<string, string>>

/**
 * Remembers, beside what was built, every file that went into it. A new file is imported by one that has changed, so that
 * nothing can be missed.
 *
 * @param modules the ids of the bundler's modules
 */
export function writeStamp(folder: string, modules: Iterable<string>): void {
  const own = [...modules]
    .map((id) => id.replace(/[?#].*$/, ''))
    .filter((path) => path.startsWith(root) && !path.includes('/node_modules/') && existsSync(path))
    .map((path) => relative(root, path))
  const paths = [...new Set([...always, ...own])].toSorted()
  const stamp: Stamp = Object.fromEntries(paths.map((path) => [path, digest(path)]))
  writeFileSync(stampIn(folder), `${JSON.stringify(stamp, null, 2)}\n`)
}

/** Whether a folder holds what a build would make now. */
export function isFresh(folder: string): boolean {
  try {
    const stamp = JSON.parse(readFileSync(stampIn(folder), 'utf8')) as Stamp
    return Object.entries(stamp).every(([path, before]) => digest(path) === before)
  } catch {
    return false
  }
}

function digest(path: string): string {
  return createHash('sha256')
    .update(readFileSync(join(root, path)))
    .digest('base64url')
}

function stampIn(folder: string): string {
  return join(folder, 'stamp.json')
}

import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../command.ts'

const everywhere = ['src', 'service', 'console', 'test', 'tools', 'bench']

/** Turns what a person typed (files, folders, patterns, or nothing at all) into test files, each once, in a steady order. */
export function discover(paths: readonly string[]): string[] {
  const patterns = (paths.length === 0 ? everywhere : paths).map((path) =>
    isFolder(path) ? `${path}/**/*.test.ts` : path,
  )
  const files = globSync(patterns, { cwd: root, exclude: ['**/node_modules/**'] })
  return [...new Set(files)].toSorted()
}

function isFolder(path: string): boolean {
  return statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() ?? false
}

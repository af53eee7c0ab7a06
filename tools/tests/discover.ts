import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../command.ts'

/** `fast` runs with every `npm test`, `proof` with `npm run prove`. */
export type Tier = 'fast' | 'proof'

const everywhere = ['src', 'service', 'console', 'test', 'tools', 'bench']
/** What takes long stands here, and nowhere else. */
const proofFolder = 'test/proof/'
/** Tests outside of it stand beside the code: they need no server and share a process. */
const testFolder = 'test/'

/**
 * Turns what was asked for (files, folders, patterns, or nothing at all) into test files, each once, in a steady order.
 * What is named is run whatever its tier; without names the folder decides.
 */
export function discover(tier: Tier, paths: readonly string[]): string[] {
  const patterns = (paths.length === 0 ? everywhere : paths).map((path) =>
    isFolder(path) ? `${path}/**/*.test.ts` : path,
  )
  const files = [...new Set(globSync(patterns, { cwd: root, exclude: ['**/node_modules/**'] }))].toSorted()
  return paths.length > 0 ? files : files.filter((file) => tierOf(file) === tier)
}

function tierOf(file: string): Tier {
  return file.startsWith(proofFolder) ? 'proof' : 'fast'
}

export function isUnit(file: string): boolean {
  return !file.startsWith(testFolder)
}

function isFolder(path: string): boolean {
  return statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() ?? false
}

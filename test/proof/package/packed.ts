import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dirname, '../../..')
const PARTS = ['bin', 'README.md', 'LICENSE', 'CHANGELOG.md', 'package.json', 'docs/start.md', 'examples']
const LONGEST_MS = 240_000

/** Builds and packs what would be published, beside the working tree, and returns the path of the archive. */
export function pack(folder: string): string {
  const stage = join(folder, 'stage')
  mkdirSync(stage)
  for (const name of PARTS) cpSync(join(root, name), join(stage, name), { recursive: true })
  execFileSync(process.execPath, ['tools/build.ts', join(stage, 'dist')], { cwd: root, timeout: LONGEST_MS })
  npm(stage, ['pack', '--ignore-scripts', '--pack-destination', folder])
  const archive = readdirSync(folder).find((name) => name.endsWith('.tgz'))
  if (archive === undefined) throw new Error('npm packed nothing')
  return join(folder, archive)
}

export function npm(cwd: string, args: readonly string[]): string {
  const quiet = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']
  return execFileSync('npm', [...args, ...quiet], { cwd, encoding: 'utf8', timeout: LONGEST_MS })
}

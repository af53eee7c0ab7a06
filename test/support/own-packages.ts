import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../../tools/command.ts'
import { installLocked } from '../../tools/locked.ts'

export type OwnPackages =
  | { readonly kind: 'installed'; readonly nodeModules: string }
  /** Nothing can be fetched here. */
  | { readonly kind: 'missing'; readonly reason: string }

/**
 * Installs the packages of a folder with a lock file of its own, once per lock file: what only tests need of the world is no
 * dependency of the repository. `onceonly` is the repository itself, by its sources.
 *
 * @param folder with `package.json` and `package-lock.json`
 */
export async function installOwnPackages(folder: string): Promise<OwnPackages> {
  const lock = readFileSync(join(folder, 'package-lock.json'))
  const name = createHash('sha256').update(lock).digest('hex').slice(0, 16)
  const cache = join(root, 'node_modules', '.cache', 'own-packages')
  const whole = join(cache, name)
  if (!existsSync(whole)) {
    mkdirSync(cache, { recursive: true })
    // Moved into its place when it is complete, so that two test files may install at once.
    const made = mkdtempSync(join(cache, `${name}-`))
    try {
      for (const file of ['package.json', 'package-lock.json']) cpSync(join(folder, file), join(made, file))
      const failure = await installLocked(made)
      if (failure !== null) {
        if (process.env['CI'] === 'true') throw new Error(failure)
        return { kind: 'missing', reason: `the packages of ${folder.slice(root.length + 1)} could not be fetched` }
      }
      symlinkSync(root, join(made, 'node_modules', 'onceonly'))
      if (!existsSync(whole)) renameSync(made, whole)
    } finally {
      rmSync(made, { recursive: true, force: true })
    }
  }
  return { kind: 'installed', nodeModules: join(whole, 'node_modules') }
}

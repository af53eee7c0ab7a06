import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../../tools/command.ts'
import { installLocked } from '../../tools/locked.ts'

/**
 * What only tests need of the world is no dependency of the repository: a folder with a lock file of its own has it, and
 * `onceonly` there is the repository itself, by its sources. Answers why the packages could not be had, or false.
 */
export async function installOwnPackages(folder: string): Promise<string | false> {
  const failure = await installLocked(folder)
  if (failure === null) {
    const ours = join(folder, 'node_modules', 'onceonly')
    if (!existsSync(ours)) symlinkSync(root, ours)
    return false
  }
  if (process.env['CI'] === 'true') throw new Error(failure)
  return `SKIPPED: the packages of ${folder.slice(root.length + 1)} could not be fetched`
}

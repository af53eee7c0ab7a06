import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { capture, root } from './command.ts'

/**
 * Packages that only one command needs have a lock file in a folder of their own, so that `npm ci` of the repository stays
 * small. This brings them, unless they are there already to the version, and answers why it could not.
 */
export async function installLocked(
  folder: string,
  progress: (line: string) => void = () => undefined,
): Promise<string | null> {
  if (isInstalled(folder)) return null
  progress(`installing the packages of ${folder} …`)
  const cache = join(root, 'node_modules', '.cache')
  mkdirSync(cache, { recursive: true })
  // Moved into its place when it is complete, so that several processes may install at once.
  const made = mkdtempSync(join(cache, 'locked-'))
  try {
    for (const file of ['package.json', 'package-lock.json']) cpSync(join(folder, file), join(made, file))
    // Their install scripts download or compile; nothing here needs one.
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']
    const { ok, output } = await capture('npm', ['ci', '--prefix', made, ...flags])
    if (!ok) return output
    if (!isInstalled(folder)) {
      rmSync(join(folder, 'node_modules'), { recursive: true, force: true })
      renameSync(join(made, 'node_modules'), join(folder, 'node_modules'))
    }
    return null
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}

function isInstalled(folder: string): boolean {
  const wanted = Object.entries(lockedIn(folder)).filter(([path, entry]) => path !== '' && isForHere(entry))
  const present = packagesOf(join(folder, 'node_modules', '.package-lock.json'))
  // Updating a lock file lets npm list what it has not fetched.
  return wanted.every(
    ([path, { version }]) => present[path]?.version === version && existsSync(join(folder, path, 'package.json')),
  )
}

/** Programs come in a package for each platform, and npm leaves out those for others; it alone knows the C library. */
function isForHere({ os, cpu, libc }: LockEntry): boolean {
  if (libc !== undefined) return false
  return (os?.includes(process.platform) ?? true) && (cpu?.includes(process.arch) ?? true)
}

interface LockEntry {
  readonly version?: string
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
  readonly libc?: readonly string[]
}

type Locked = Readonly<Record<string, LockEntry>>

export function lockedIn(folder: string): Locked {
  return packagesOf(join(folder, 'package-lock.json'))
}

function packagesOf(path: string): Locked {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as { packages: Locked }).packages : {}
}

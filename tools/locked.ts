import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { capture } from './command.ts'

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
  // Their install scripts download or compile; nothing here needs one.
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']
  const { ok, output } = await capture('npm', ['ci', '--prefix', folder, ...flags])
  return ok ? null : output
}

function isInstalled(folder: string): boolean {
  const wanted = Object.entries(lockedIn(folder)).filter(([path, entry]) => path !== '' && isForHere(entry))
  const present = packagesOf(join(folder, 'node_modules', '.package-lock.json'))
  return wanted.every(([path, { version }]) => present[path]?.version === version)
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

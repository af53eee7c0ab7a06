import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { capture, root } from '../../tools/command.ts'

/**
 * Peers are the packages that we are compared with. They are not our dependencies, so `npm ci` of the repository never
 * brings them: the benchmark that needs them installs them into a folder that git ignores.
 */
const FOLDER = join(root, 'bench', 'peers')

export async function installPeers(progress: (line: string) => void): Promise<void> {
  if (isInstalled()) return
  progress('installing the packages that we are compared with …')
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const { ok, output } = await capture('npm', ['ci', '--prefix', FOLDER, ...flags])
  if (!ok) throw new Error(`The peers cannot be installed:\n${output}`)
}

/** As the lock file says, to the version: a figure against an old peer would be wrong without a word. */
function isInstalled(): boolean {
  const wanted = Object.entries(lockOf('package-lock.json')).filter(([path, entry]) => path !== '' && isForHere(entry))
  const present = lockOf(join('node_modules', '.package-lock.json'))
  return wanted.every(([path, { version }]) => present[path]?.version === version)
}

/** Programs come in a package for each platform, and npm leaves out those for others. */
function isForHere({ os, cpu }: LockEntry): boolean {
  return (os?.includes(process.platform) ?? true) && (cpu?.includes(process.arch) ?? true)
}

interface LockEntry {
  readonly version?: string
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
}

type Locked = Readonly<Record<string, LockEntry>>

function lockOf(file: string): Locked {
  const path = join(FOLDER, file)
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as { packages: Locked }).packages : {}
}

export function peerVersion(name: string): string {
  return `${name} ${lockOf('package-lock.json')[`node_modules/${name}`]?.version ?? '?'}`
}

/** Found by its path, because nothing of the repository itself depends on it. */
export async function loadPeer<Exports>(name: string): Promise<Exports> {
  const require = createRequire(join(FOLDER, 'package.json'))
  return (await import(pathToFileURL(require.resolve(name)).href)) as Exports
}

/** A file of a peer that is no module: a program. */
export function peerFile(name: string, path: string): string {
  return join(FOLDER, 'node_modules', name, path)
}

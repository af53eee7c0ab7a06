import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root } from '../../tools/command.ts'
import { installLocked, lockedIn } from '../../tools/locked.ts'

/**
 * Peers are the packages that we are compared with. They are not our dependencies, so `npm ci` of the repository never
 * brings them: the benchmark that needs them installs them into a folder that git ignores. As the lock file says, to the
 * version: a figure against an old peer would be wrong without a word.
 */
const FOLDER = join(root, 'bench', 'peers')

export async function installPeers(progress: (line: string) => void): Promise<void> {
  const failure = await installLocked(FOLDER, progress)
  if (failure !== null) throw new Error(`The peers cannot be installed:\n${failure}`)
}

export function peerVersion(name: string): string {
  return `${name} ${lockedIn(FOLDER)[`node_modules/${name}`]?.version ?? '?'}`
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

import { join } from 'node:path'
import { npm } from './packed.ts'

const OLDEST = '22.19.0'

export interface OldNode {
  readonly path: string
  /** Why the oldest Node is not the one that runs the tests, or false. */
  readonly missing: string | false
}

/** Fetches the oldest Node that the package supports; where it cannot be had, ours has to do, and a test says so. */
export function oldestNode(folder: string): OldNode {
  const name = `node-linux-${process.arch}`
  try {
    npm(folder, ['install', '--no-save', '--prefix', folder, `${name}@${OLDEST}`])
    return { path: join(folder, 'node_modules', name, 'bin', 'node'), missing: false }
  } catch (error) {
    if (process.env['CI'] === 'true') throw error
    return { path: process.execPath, missing: `${name}@${OLDEST} could not be fetched` }
  }
}

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { npm } from './packed.ts'

/** Programs of other runtimes, from their packages for this platform: nothing is downloaded by an install script. */
const runtimes = {
  Bun: { package: `@oven/bun-linux-${archOf('aarch64')}`, version: '1.4.4', program: 'bin/bun', args: [] },
  Deno: { package: `@deno/linux-${archOf('arm64')}-glibc`, version: '2.9.6', program: 'deno', args: ['run', '-A'] },
} as const

export type Runtime = keyof typeof runtimes
export const runtimeNames = Object.keys(runtimes) as readonly Runtime[]

export interface FetchedRuntime {
  readonly command: string
  readonly args: readonly string[]
  /** Why it could not be had, or false. */
  readonly missing: string | false
}

export function fetchRuntime(folder: string, runtime: Runtime): FetchedRuntime {
  const { package: name, version, program, args } = runtimes[runtime]
  const command = join(folder, 'node_modules', name, program)
  // Of its own: an installation removes what another one put into the same folder.
  mkdirSync(folder)
  try {
    npm(folder, ['install', '--no-save', '--ignore-scripts', '--prefix', folder, `${name}@${version}`])
    return { command, args, missing: false }
  } catch (error) {
    if (process.env['CI'] === 'true') throw error
    return { command, args, missing: `${name}@${version} could not be fetched` }
  }
}

function archOf(arm: string): string {
  return process.arch === 'arm64' ? arm : process.arch
}

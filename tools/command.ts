import { spawn } from 'node:child_process'
import { delimiter, join } from 'node:path'

export const root = join(import.meta.dirname, '..')

/**
 * Where Node keeps what it has stripped of types and compiled, by version and content. A test process, and every server
 * that it starts, is up in half the time when an earlier one has compiled the same modules. It is a cache like any other
 * tool's, and goes with `node_modules`.
 */
export const compiledFolder = join(root, 'node_modules', '.cache', 'onceonly-tests')

/** Children find the repository's own tools and its own Node first, also when this was not started by npm. */
export const env = {
  ...process.env,
  PATH: [join(root, 'node_modules', '.bin'), process.env['PATH'] ?? ''].join(delimiter),
}

export interface Ran {
  readonly ok: boolean
  readonly output: string
}

/** Runs a command to its end and keeps what it printed, so that a check is silent unless it fails. */
export function capture(command: string, args: readonly string[], signal?: AbortSignal): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'], signal })
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.on('error', (error) => resolve({ ok: false, output: `${command}: ${error.message}\n` }))
    child.on('close', (code) => resolve({ ok: code === 0, output: Buffer.concat(chunks).toString() }))
  })
}

/** Runs a command in the foreground and answers its exit status, also when a signal ended it. */
export function foreground(command: string, args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, env, stdio: 'inherit' })
    const pass = (signal: NodeJS.Signals) => child.kill(signal)
    process.on('SIGINT', pass).on('SIGTERM', pass)
    child.on('error', reject)
    child.on('close', (code, signal) => {
      process.off('SIGINT', pass).off('SIGTERM', pass)
      resolve(code ?? (signal === null ? 1 : 128))
    })
  })
}

export function seconds(sinceMs: number): string {
  return `${((performance.now() - sinceMs) / 1000).toFixed(1)}s`
}

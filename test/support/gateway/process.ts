import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { GatewayConfig } from 'onceonly/gateway'
import { type AskOptions, ask, type GatewayAnswer } from './ask.ts'

const MAIN = join(import.meta.dirname, '../../../src/admin/cli/main.ts')

/** Runs callbacks at the end of a test or of a lab program. */
export interface Ending {
  after(end: () => Promise<unknown>): void
}

/** `onceonly gateway` as a user starts it. */
export interface GatewayProcess {
  readonly port: number
  readonly pid: number
  /** What it has written so far. */
  readonly lines: readonly string[]
  ask(options?: AskOptions): Promise<GatewayAnswer>
  /** Ends it as a supervisor does, and gives its exit status. */
  terminate(): Promise<number | null>
  kill(): Promise<void>
}

export async function temporaryFolder(context: Ending): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-gateway-'))
  context.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

export interface ProcessOptions {
  readonly config: GatewayConfig
  readonly store: string
  readonly port?: number
  /** Where drivers are found. */
  readonly cwd?: string
  /** How many files it may have open; as many as this process, when left out. */
  readonly openFiles?: number
}

let files = 0

export async function startGateway(context: Ending, folder: string, options: ProcessOptions): Promise<GatewayProcess> {
  const file = join(folder, `gateway-${++files}.json`)
  await writeFile(file, JSON.stringify({ gateway: options.config }))
  const args = ['gateway', '--config', file, '--store', options.store, '--listen', String(options.port ?? 0)]
  const limit = options.openFiles === undefined ? '' : `ulimit -n ${options.openFiles} && `
  const command = [process.execPath, '--conditions=onceonly-source', MAIN, ...args]
  const child = spawn('sh', ['-c', `${limit}exec "$0" "$@"`, ...command], {
    cwd: options.cwd ?? folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  context.after(() => end(child, 'SIGKILL'))
  const lines: string[] = []
  const port = await portOf(child, lines)
  return {
    port,
    pid: child.pid ?? 0,
    lines,
    ask: (asked) => ask(port, asked),
    terminate: () => end(child, 'SIGTERM'),
    kill: async () => void (await end(child, 'SIGKILL')),
  }
}

function portOf(child: ChildProcess, lines: string[]): Promise<number> {
  if (child.stdout === null) throw new Error('Nothing can be read of the process.')
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  createInterface(child.stdout)
    .on('line', (line) => {
      lines.push(line)
      const port = /:(\d+), store/.exec(line)?.[1]
      if (port !== undefined) resolve(Number(port))
    })
    .once('close', () => reject(new Error('The gateway ended before it listened.')))
  return promise
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
  return child.exitCode
}

/** A port that was free a moment ago, for processes that must know each other before they start. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

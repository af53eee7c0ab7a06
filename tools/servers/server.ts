import { accessSync, chownSync, constants, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { LOG_TAIL_LINES, READY_POLL_MS, START_ATTEMPTS, START_BOUND_MS } from './limits.ts'
import { type StopSignal, type Supervised, supervise } from './supervisor.ts'

export type Log = (line: string) => void

/** Where a private server lives. */
export interface Place {
  readonly folder: string
  readonly port: number
}

/** What one kind of server needs to know about itself; everything else is the same for all of them. */
export type Recipe<Kind extends string = string> = {
  readonly kind: Kind
  /** The variable that names a server to be used as it is, and the one under which a private server is announced. */
  readonly variable: string
  /** What to install on Debian and Ubuntu. */
  readonly packages: readonly string[]
  /** Files that must exist while the packages are installed, so that the installation starts and creates nothing. */
  readonly filesWhileInstalling?: Readonly<Record<string, string>>
  /** Who the server runs as when we are root: the first of these accounts that exists. */
  readonly accounts: readonly string[]
  /** The quickest orderly end: the data is thrown away, but shared memory and children are not to be left behind. */
  readonly stopSignal: StopSignal
  /** The folder that holds the programs, if they are installed. */
  readonly find: () => string | undefined
  /** A shell script that makes the server's files in its folder and ends in `exec server`. */
  readonly script: (programs: string, place: Place) => string
  readonly isReady: (place: Place) => Promise<boolean>
  readonly url: (place: Place) => string
}

export interface PrivateServer extends Place {
  readonly pid: number
  readonly url: string
  readonly stop: () => Promise<void>
}

/** Starts a server of our own on a free loopback port, in a folder of its own. */
export async function startPrivate(recipe: Recipe, programs: string, log: Log): Promise<PrivateServer> {
  for (let attempt = 1; ; attempt++) {
    const startedAtMs = performance.now()
    const port = await freePort()
    log(`${recipe.kind}: starting a private server on port ${port} …`)
    const start = await startOnce(recipe, programs, port)
    if (start.kind === 'ready') {
      log(`${recipe.kind}: ready in ${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s`)
      return start.server
    }
    const portWasTaken = /address (is )?already in use/i.test(start.logTail)
    if (!portWasTaken || attempt >= START_ATTEMPTS) {
      throw new Error(`${recipe.kind}: ${start.reason}. The end of its log:\n${start.logTail}`)
    }
    log(`${recipe.kind}: port ${port} was taken meanwhile, trying another`)
  }
}

type Start =
  | { readonly kind: 'ready'; readonly server: PrivateServer }
  | { readonly kind: 'failed'; readonly reason: string; readonly logTail: string }

async function startOnce(recipe: Recipe, programs: string, port: number): Promise<Start> {
  const owner = unprivilegedAccount(recipe.accounts)
  const folder = mkdtempSync(join(tmpdir(), `onceonly-${recipe.kind}-`))
  const place = { folder, port }
  let supervised: Supervised
  try {
    if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
    const { stopSignal } = recipe
    supervised = await supervise({ script: recipe.script(programs, place), folder, owner, stopSignal })
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
  const reason = await untilReady(recipe, place, supervised)
  if (reason === undefined) {
    return { kind: 'ready', server: { ...place, pid: supervised.pid, url: recipe.url(place), stop: supervised.stop } }
  }
  const logTail = tailOf(join(folder, 'log'))
  await supervised.stop()
  return { kind: 'failed', reason, logTail }
}

/** Answers why the server did not become ready, or nothing. */
async function untilReady(recipe: Recipe, place: Place, supervised: Supervised): Promise<string | undefined> {
  const deadlineMs = performance.now() + START_BOUND_MS
  while (performance.now() < deadlineMs) {
    const status = supervised.endedWith()
    if (status !== undefined) return `the server ended with status ${status} while starting`
    if (await recipe.isReady(place)) return undefined
    await sleep(READY_POLL_MS)
  }
  return `the server was not ready within ${START_BOUND_MS} ms`
}

/** PostgreSQL and RabbitMQ refuse to run as root, so root lends them another account. Nobody else can, or has to. */
function unprivilegedAccount(names: readonly string[]): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const accounts = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  for (const name of names) {
    const account = accounts.find((fields) => fields[0] === name)
    if (account !== undefined) return { uid: Number(account[2]), gid: Number(account[3]) }
  }
  throw new Error(`None of the accounts ${names.join(', ')} exists to run a server as.`)
}

/** A port that was free a moment ago. Another process may take it first, which the caller must expect. */
async function freePort(): Promise<number> {
  const listener = createServer()
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  listener.once('error', reject)
  listener.listen(0, '127.0.0.1', () => {
    const address = listener.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    listener.close(() => resolve(port))
  })
  return await promise
}

function tailOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n')
  } catch {
    return '(there is no log)'
  }
}

/** The first folder, of those in PATH and then of `others`, that holds all of these programs. */
export function findPrograms(names: readonly string[], others: readonly string[] = []): string | undefined {
  const inPath = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/'))
  return [...inPath, ...others].find((folder) => names.every((name) => isExecutable(join(folder, name))))
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** One word for a shell, whatever it holds. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`
}

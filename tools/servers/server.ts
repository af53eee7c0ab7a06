import { once } from 'node:events'
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
  /** As many more as the recipe asked for, for what the server says among its own. */
  readonly morePorts: readonly number[]
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
  /** The account that the server runs as when we are root: the first of these that exists. */
  readonly accounts: readonly string[]
  /** The quickest orderly end: the data is thrown away, but shared memory and children are not to be left behind. */
  readonly stopSignal: StopSignal
  /** The folder that holds the programs, if they are installed. */
  readonly find: () => string | undefined
  /** How many ports the server needs besides the one that clients use; none if it does not say. */
  readonly morePorts?: number
  /** A shell script that makes the server's files in its folder, unless they are there, and ends in `exec server`. */
  readonly script: (programs: string, place: Place) => string
  readonly isReady: (place: Place) => Promise<boolean>
  readonly url: (place: Place) => string
}

export interface PrivateServer extends Place {
  /** Of the process that runs now: another one after `revive`. */
  readonly pid: number
  readonly url: string
  readonly stop: () => Promise<void>
  /** An outage: the server ends, its data and its port stay. */
  readonly halt: () => Promise<void>
  /** The end of the outage: the server runs again, where it was and with what it had. */
  readonly revive: () => Promise<void>
}

/** Starts a server of our own on a free loopback port, in a folder of its own. */
export async function startPrivate(recipe: Recipe, programs: string, log: Log): Promise<PrivateServer> {
  for (let attempt = 1; ; attempt++) {
    const startedAtMs = performance.now()
    const [port = 0, ...morePorts] = await freePorts(1 + (recipe.morePorts ?? 0))
    log(`${recipe.kind}: starting a private server on port ${port} …`)
    const start = await startOnce(recipe, programs, { port, morePorts })
    if (start.kind === 'ready') {
      log(`${recipe.kind}: ready in ${((performance.now() - startedAtMs) / 1_000).toFixed(1)} s`)
      return start.server
    }
    const portWasTaken = /address (is )?already in use|eaddrinuse/i.test(start.logTail)
    if (!portWasTaken || attempt >= START_ATTEMPTS) {
      throw new Error(`${recipe.kind}: ${start.reason}. The end of its log:\n${start.logTail}`)
    }
    log(`${recipe.kind}: port ${port} was taken meanwhile, trying another`)
  }
}

type Start =
  | { readonly kind: 'ready'; readonly server: PrivateServer }
  | { readonly kind: 'failed'; readonly reason: string; readonly logTail: string }

async function startOnce(recipe: Recipe, programs: string, ports: Omit<Place, 'folder'>): Promise<Start> {
  const owner = unprivilegedAccount(recipe.accounts)
  const folder = mkdtempSync(join(tmpdir(), `onceonly-${recipe.kind}-`))
  const place = { folder, ...ports }
  const run = { script: recipe.script(programs, place), folder, owner, stopSignal: recipe.stopSignal }
  let supervised: Supervised
  try {
    if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
    supervised = await supervise(run)
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
  const reason = await untilReady(recipe, place, supervised)
  if (reason === undefined) return { kind: 'ready', server: privateServer(recipe, place, supervised, run) }
  const logTail = tailOf(join(folder, 'log'))
  await supervised.stop()
  return { kind: 'failed', reason, logTail }
}

function privateServer(
  recipe: Recipe,
  place: Place,
  first: Supervised,
  run: Parameters<typeof supervise>[0],
): PrivateServer {
  let supervised = first
  return {
    ...place,
    url: recipe.url(place),
    get pid() {
      return supervised.pid
    },
    stop: () => supervised.stop(),
    halt: () => supervised.halt(),
    async revive() {
      const halted = supervised
      supervised = await supervise(run)
      // From here on the new supervisor removes the folder, so the old one may go.
      await halted.release()
      const reason = await untilReady(recipe, place, supervised)
      if (reason !== undefined) {
        throw new Error(`${recipe.kind}: ${reason}. The end of its log:\n${tailOf(join(place.folder, 'log'))}`)
      }
    },
  }
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

/**
 * PostgreSQL and RabbitMQ refuse to run as root, so root runs them under another account. Other users cannot, and need
 * not.
 */
export function unprivilegedAccount(names: readonly string[]): { uid: number; gid: number } | undefined {
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

/**
 * Ports that were free a moment ago, all different. Another process may take one first, which the caller must expect.
 */
export async function freePorts(count: number): Promise<number[]> {
  const listeners = await Promise.all(
    Array.from({ length: count }, async () => {
      const listener = createServer().listen(0, '127.0.0.1')
      await once(listener, 'listening')
      return listener
    }),
  )
  const ports = listeners.map((listener) => {
    const address = listener.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  })
  await Promise.all(listeners.map((listener) => once(listener.close(), 'close')))
  return ports
}

function tailOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n')
  } catch {
    return '(there is no log)'
  }
}

/** The first folder, of `preferred`, then of those in PATH and then of `others`, that holds all of these programs. */
export function findPrograms(
  names: readonly string[],
  others: readonly string[] = [],
  preferred: readonly string[] = [],
): string | undefined {
  const inPath = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/'))
  return [...preferred, ...inPath, ...others].find((folder) => names.every((name) => isExecutable(join(folder, name))))
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

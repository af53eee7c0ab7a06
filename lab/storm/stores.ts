import { appendFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startOwn } from '../../test/support/own-server.ts'
import { pause, pauseOne, resume } from '../../test/support/pause.ts'
import { SERVER_VARIABLES, type Servers, type StartedServer } from '../../tools/servers/index.ts'

/** `postgres-redis`: the keys of messages and the locks of the guard are in Redis, everything else in PostgreSQL. */
export const stormNames = ['sqlite', 'postgres', 'postgres-redis'] as const
export type StormName = (typeof stormNames)[number]

/** Ends a pause. */
export type Wake = () => void

/** One combination of stores, with servers of the lab's own, so that it may pause them. */
export interface Storm {
  readonly name: StormName
  readonly place: 'sqlite' | 'postgres'
  /** What the servers of the service need to know of it. */
  readonly env: Readonly<Record<string, string>>
  /** The locks of the guard are in another store than the messages. */
  readonly locksElsewhere: boolean
  readonly lockStore: string
  /** Stores that can be paused, by name; SQLite is none of them: it stands still with the process that writes. */
  readonly stores: Readonly<Record<string, () => Promise<Wake>>>
  /** Pauses whatever keeps the locks; on SQLite the first of these processes, which may be writing. */
  pauseLocks(pids: readonly number[]): Promise<Wake>
}

export interface Storms extends AsyncDisposable {
  /** Done last, also where a signal ends the lab. */
  beforeExit(work: () => void): void
  note(name: string, line: string, figures: object): void
  /** One combination after the other; the first violation ends the lab. */
  each(work: (storm: Storm, say: (line: string, figures: object) => void) => Promise<void>): Promise<void>
}

/** Starts the servers that these combinations need. Every line is printed, and appended to a file of JSON lines. */
export async function openStorms(names: readonly string[], out: string | undefined): Promise<Storms> {
  const unknown = names.find((name) => !stormNames.some((each) => each === name))
  if (unknown !== undefined) throw new Error(`--on is one of ${stormNames.join(', ')}, not ${unknown}`)
  const chosen = stormNames.filter((name) => names.includes(name))
  const file = out ?? join(tmpdir(), `onceonly-storm-${process.pid}.jsonl`)
  console.log(`Results are appended to ${file}`)
  await using started = new AsyncDisposableStack()
  const postgres = chosen.some((name) => name !== 'sqlite') ? await startOne('postgres', started) : null
  const redis = chosen.includes('postgres-redis') ? await startOne('redis', started) : null
  const servers = started.move()
  const startedMs = performance.now()
  let written: Promise<void> = Promise.resolve()

  const note: Storms['note'] = (name, line, figures) => {
    const seconds = Math.round((performance.now() - startedMs) / 1_000)
    console.log(`${name}, ${seconds} s: ${line}`)
    const text = `${JSON.stringify({ at: new Date().toISOString(), seconds, on: name, line, ...figures })}\n`
    written = written.then(() => appendFile(file, text))
  }

  const last: (() => void)[] = [() => [postgres, redis].forEach((server) => server !== null && wake(server))]
  process.on('exit', () => last.forEach((work) => work()))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

  return {
    beforeExit: (work) => void last.push(work),
    note,
    async each(work) {
      for (const name of chosen) {
        try {
          await work(stormOf(name, postgres, redis), (line, figures) => note(name, line, figures))
        } catch (error) {
          note(name, `VIOLATION: ${error instanceof Error ? error.message : String(error)}`, {})
          throw error
        }
        note(name, 'Good.', {})
      }
    },
    async [Symbol.asyncDispose]() {
      await written
      await servers.disposeAsync()
    },
  }
}

async function startOne(kind: 'postgres' | 'redis', started: AsyncDisposableStack): Promise<StartedServer> {
  const servers: Servers = started.use(await startOwn(kind))
  const [server] = servers.started
  if (server === undefined) throw new Error(`There is no ${kind} to start`)
  // Where the cluster looks for its database.
  process.env[SERVER_VARIABLES[kind]] = server.url
  return server
}

function stormOf(name: StormName, postgres: StartedServer | null, redis: StartedServer | null): Storm {
  const pauses = {
    ...(name !== 'sqlite' && postgres !== null ? { postgres: () => pauseAll(postgres) } : {}),
    ...(name === 'postgres-redis' && redis !== null ? { redis: () => pauseAll(redis) } : {}),
  }
  const locksElsewhere = name === 'postgres-redis'
  return {
    name,
    place: name === 'sqlite' ? 'sqlite' : 'postgres',
    env: locksElsewhere && redis !== null ? { ONCEONLY_CLAIMS: redis.url } : {},
    locksElsewhere,
    lockStore: name === 'sqlite' ? 'a server on SQLite' : locksElsewhere ? 'redis' : 'postgres',
    stores: pauses,
    pauseLocks([pid = 0]) {
      const ofLocks = pauses.redis ?? pauses.postgres
      return ofLocks === undefined ? pauseProcess(pid) : ofLocks()
    },
  }
}

async function pauseAll(server: StartedServer): Promise<Wake> {
  await pause(server.pid)
  return () => wake(server)
}

/** One that was paused cannot be stopped. */
function wake({ pid }: StartedServer): void {
  try {
    resume(pid)
  } catch {
    // It has ended.
  }
}

export async function pauseProcess(pid: number): Promise<Wake> {
  await pauseOne(pid)
  return () => void process.kill(pid, 'SIGCONT')
}

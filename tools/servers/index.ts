import { canInstall, install } from './apt.ts'
import { browser } from './browser.ts'
import { mariadb } from './mariadb.ts'
import { nats } from './nats.ts'
import { postgres } from './postgres.ts'
import { rabbitmq } from './rabbitmq.ts'
import { redis } from './redis.ts'
import { type Log, type PrivateServer, type Recipe, startPrivate } from './server.ts'

const RECIPES = { postgres, redis, rabbitmq, nats, mariadb, browser } as const

export type ServerKind = keyof typeof RECIPES
export const SERVER_KINDS = Object.keys(RECIPES) as readonly ServerKind[]

/** Where tests find the URL of each. */
export const SERVER_VARIABLES: Readonly<Record<ServerKind, string>> = {
  postgres: postgres.variable,
  redis: redis.variable,
  rabbitmq: rabbitmq.variable,
  nats: nats.variable,
  mariadb: mariadb.variable,
  browser: browser.variable,
}

export interface Servers {
  /** One URL for each server that is there, under the variable that tests and benchmarks read. */
  readonly env: Record<string, string>
  /** Those that we started ourselves, for tests that halt or pause a server on purpose. */
  readonly started: readonly StartedServer[]
  /** Ends what we started, and nothing else. */
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface StartedServer extends PrivateServer {
  readonly kind: string
}

export interface StartOptions {
  readonly log?: (line: string) => void
}

/**
 * Finds or starts real servers: by URL from the environment, else from an installed program, else by installing it, and
 * else not at all, which is said loudly and under `CI=true` is an error.
 */
export function startServers(kinds: readonly ServerKind[], options: StartOptions = {}): Promise<Servers> {
  return startRecipes(
    [...new Set(kinds)].map((kind) => RECIPES[kind]),
    options,
  )
}

/** The same for any recipes, so that tests can bring servers of their own. */
export async function startRecipes(recipes: readonly Recipe[], options: StartOptions = {}): Promise<Servers> {
  const log = options.log ?? ((line) => process.stderr.write(`${line}\n`))
  const env: Record<string, string> = {}

  // 1. A server that the environment names is used as it is.
  const wanted: Recipe[] = []
  for (const recipe of recipes) {
    const url = process.env[recipe.variable]
    if (url === undefined || url === '') wanted.push(recipe)
    else {
      env[recipe.variable] = url
      log(`${recipe.kind}: using the server of ${recipe.variable}`)
    }
  }

  // 2. and 3. Installed programs, and what can be installed.
  await installMissing(
    wanted.filter((recipe) => recipe.find() === undefined),
    log,
  )

  // 4. What is still missing is skipped, with a visible message.
  const found = wanted.flatMap((recipe) => {
    const programs = recipe.find()
    if (programs === undefined) reportMissing(recipe, log)
    return programs === undefined ? [] : [{ recipe, programs }]
  })

  const starts = await Promise.allSettled(
    found.map(async ({ recipe, programs }) => ({ recipe, server: await startPrivate(recipe, programs, log) })),
  )
  const running = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []))
  const failures = starts.flatMap((start) => (start.status === 'rejected' ? [start.reason] : []))
  const stop = () => stopAll(running.map(({ server }) => server))
  if (failures.length > 0) {
    await stop()
    throw failures.length === 1 ? failures[0] : new AggregateError(failures, 'Several servers did not start.')
  }
  for (const { recipe, server } of running) env[recipe.variable] = server.url
  const started = running.map(({ recipe, server }) => Object.assign(server, { kind: recipe.kind }))
  return { env, started, stop, [Symbol.asyncDispose]: stop }
}

async function installMissing(missing: readonly Recipe[], log: Log): Promise<void> {
  const installable = missing.filter((recipe) => recipe.packages.length > 0)
  if (installable.length === 0 || !canInstall()) return
  try {
    await install(installable, log)
  } catch (error) {
    // Whether a missing server is an error is decided in one place, below; here we only say why it is missing.
    log(error instanceof Error ? error.message : String(error))
  }
}

function reportMissing(recipe: Recipe, log: Log): void {
  const advice = `install it (Debian and Ubuntu: apt-get install ${recipe.packages.join(' ')}) or set ${recipe.variable}`
  if (process.env.CI === 'true') throw new Error(`${recipe.kind}: no server found; ${advice}.`)
  log(`${recipe.kind}: NO SERVER FOUND, everything that needs one is SKIPPED; ${advice}`)
}

/** All of them, even when one does not want to end. */
async function stopAll(servers: readonly PrivateServer[]): Promise<void> {
  const stops = await Promise.allSettled(servers.map((server) => server.stop()))
  const failures = stops.flatMap((stop) => (stop.status === 'rejected' ? [stop.reason] : []))
  if (failures.length > 0) throw failures.length === 1 ? failures[0] : new AggregateError(failures)
}

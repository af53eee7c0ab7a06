import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ServedRoute } from '../../http/protocol/describe.ts'
import type { SqlStore } from '../../ledger/store/port.ts'
import type { RunDefinition } from '../../runs/definition.ts'
import { Usage } from './usage.ts'

/** What `onceonly.config.ts` exports. Importing it must do nothing: the store is opened when it is needed. */
export interface CliConfig {
  /** The definitions whose runs can be replayed. */
  readonly runs?: readonly RunDefinition[]
  /** Opens the store that everything is in. */
  readonly store?: () => SqlStore | Promise<SqlStore>
  /** The routes whose design checklist can be printed. */
  readonly routes?: readonly ServedRoute[]
}

const NAMES = ['onceonly.config.ts', 'onceonly.config.js', 'onceonly.config.mjs']

/** The file that was named, or the first of the usual names that is here; null when nothing was named and none is here. */
export function findConfig(given: string | undefined, names: readonly string[] = NAMES): string | null {
  const found = (given === undefined ? names : [given]).map((name) => resolve(name)).find((path) => existsSync(path))
  if (found === undefined && given !== undefined) throw new Usage(`${given} is not there.`)
  return found ?? null
}

/** The same, for a command that cannot do without one. */
export function configFile(given: string | undefined): string {
  const found = findConfig(given)
  if (found !== null) return found
  throw new Usage(`A configuration is needed, and none of ${NAMES.join(', ')} is here. Name it with --config.`)
}

/** What a module or a JSON file exports. */
export async function loadConfig<Config extends object = CliConfig>(file: string): Promise<Config> {
  try {
    if (extname(file) === '.json') return JSON.parse(await readFile(file, 'utf8')) as Config
    const loaded = (await import(pathToFileURL(file).href)) as Config & { readonly default?: Config }
    return loaded.default ?? loaded
  } catch (cause) {
    throw new Usage(`${file} cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

export function runsOf({ runs }: CliConfig, file: string): ReadonlyMap<string, RunDefinition> {
  if (!Array.isArray(runs) || runs.length === 0) throw new Usage(`${file} exports no \`runs\`.`)
  return new Map((runs as readonly RunDefinition[]).map((run) => [run.name, run]))
}

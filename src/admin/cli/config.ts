import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
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

/** The first of the usual names that is here; null when nothing was named and nothing is. */
export function usualConfig(given: string | undefined): string | null {
  if (given !== undefined) return configFile(given)
  return NAMES.map((name) => resolve(name)).find((path) => existsSync(path)) ?? null
}

/** The file that was named, or the first of the usual names. */
export function configFile(given: string | undefined): string {
  const candidates = given === undefined ? NAMES : [given]
  const found = candidates.map((name) => resolve(name)).find((path) => existsSync(path))
  if (found !== undefined) return found
  const text = given === undefined ? `none of ${NAMES.join(', ')} is here` : `${given} is not there`
  throw new Usage(`A configuration is needed, and ${text}. Name it with --config.`)
}

export async function loadConfig(file: string): Promise<CliConfig> {
  try {
    const loaded = (await import(pathToFileURL(file).href)) as CliConfig & { readonly default?: CliConfig }
    return loaded.default ?? loaded
  } catch (cause) {
    throw new Usage(`${file} cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

export function runsOf({ runs }: CliConfig, file: string): ReadonlyMap<string, RunDefinition> {
  if (!Array.isArray(runs) || runs.length === 0) throw new Usage(`${file} exports no \`runs\`.`)
  return new Map((runs as readonly RunDefinition[]).map((run) => [run.name, run]))
}

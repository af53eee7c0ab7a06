import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { newKey } from './keys.ts'
import type { Workspaces } from './workspaces.ts'

export const DEMO = { workspaceId: 'demo', caller: 'demo' } as const

export interface Secrets {
  /** Null without a demo. */
  readonly demoKey: string | null
  readonly operatorToken: string
  readonly hookSecret: string
}

/** Secrets that are not configured are made once and kept beside the data, readable by its owner only. */
export async function readSecrets(config: Config): Promise<Secrets> {
  const { dataFolder } = config
  return {
    demoKey: config.demo ? (config.demoKey ?? (await kept(demoKeyFile(config), newKey))) : null,
    operatorToken: config.operatorToken ?? (await kept(join(dataFolder, 'operator-token'), newSecret)),
    hookSecret: config.hookSecret ?? (await kept(join(dataFolder, 'hook-secret'), newSecret)),
  }
}

export function demoKeyFile({ dataFolder }: Pick<Config, 'dataFolder'>): string {
  return join(dataFolder, 'demo-key')
}

function newSecret(): string {
  return randomBytes(24).toString('base64url')
}

const OWNER_ONLY = 0o600

async function kept(path: string, make: () => string): Promise<string> {
  try {
    // Two servers that start at once on one folder agree, because only one of them can make the file.
    await writeFile(path, make(), { flag: 'wx', mode: OWNER_ONLY })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
  return (await readFile(path, 'utf8')).trim()
}

/** Its caller has the key of today only: an older one may have become known. Without a demo it has none. */
export async function makeDemoWorkspace(workspaces: Workspaces, { demoKey }: Secrets): Promise<void> {
  if (demoKey === null) return workspaces.removeOtherKeys(DEMO.workspaceId, DEMO.caller, null)
  await workspaces.put(DEMO.workspaceId, 'Demo')
  const { keyId } = await workspaces.addKey(DEMO.workspaceId, DEMO.caller, { key: demoKey })
  await workspaces.removeOtherKeys(DEMO.workspaceId, DEMO.caller, keyId)
}

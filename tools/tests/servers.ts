import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../command.ts'

interface Servers {
  readonly env: Record<string, string>
  stop(): Promise<void>
}

/** Tests find their servers by environment, which every test process inherits; they are stopped however the work ends. */
export async function withServers<T>(kinds: readonly string[], work: () => Promise<T>): Promise<T> {
  const module = join(root, 'tools/servers/index.ts')
  if (!existsSync(module)) return work()
  const { startServers } = (await import(module)) as {
    startServers: (kinds: readonly string[]) => Promise<Servers>
  }
  const servers = await startServers(kinds)
  try {
    Object.assign(process.env, servers.env)
    return await work()
  } finally {
    await servers.stop()
  }
}

import { type ServerKind, startServers } from '../servers/index.ts'

/** Tests find their servers by environment, which every test process inherits; they are stopped however the work ends. */
export async function withServers<T>(kinds: readonly ServerKind[], work: () => Promise<T>): Promise<T> {
  const servers = await startServers(kinds)
  try {
    Object.assign(process.env, servers.env)
    return await work()
  } finally {
    await servers.stop()
  }
}

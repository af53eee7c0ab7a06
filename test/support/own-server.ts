import { SERVER_VARIABLES, type ServerKind, type Servers, startServers } from '../../tools/servers/index.ts'

/** A server of one test only, so that the test may halt it. */
export async function startOwn(kind: ServerKind): Promise<Servers> {
  const variable = SERVER_VARIABLES[kind]
  const shared = process.env[variable]
  delete process.env[variable]
  try {
    return await startServers([kind], { log: () => {} })
  } finally {
    if (shared !== undefined) process.env[variable] = shared
  }
}

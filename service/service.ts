import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { createLedger } from 'onceonly'
import { createSqliteStore } from 'onceonly/sqlite'
import { BadSetting, type Config } from './config.ts'
import { addEscalations } from './escalations/routes.ts'
import { migrations } from './escalations/schema.ts'
import { createServer } from './server.ts'

export interface Service {
  readonly url: string
  stop(): Promise<void>
}

/** Puts the parts together in the order in which they need each other, and takes them apart the other way round. */
export async function startService(config: Config): Promise<Service> {
  await makeFolder(config)
  const store = createSqliteStore({ path: join(config.dataFolder, 'onceonly.db') })
  const once = createLedger({ store })
  const server = await createServer()
  const stop = async () => {
    await server.close()
    await once.stop()
    await store.stop()
  }
  try {
    await store.sql.migrate('escalations', migrations)
    addEscalations(server, { once, query: store.sql.query })
    return { url: await listen(server, config), stop }
  } catch (error) {
    // Whatever stops the start must not keep the process alive.
    await stop()
    throw error
  }
}

// A setting that only the system can judge is refused like any other: in one line that names it.

async function makeFolder({ dataFolder }: Config): Promise<void> {
  try {
    await mkdir(dataFolder, { recursive: true })
  } catch (error) {
    throw new BadSetting('dataFolder', dataFolder, `cannot be used: ${reason(error)}`)
  }
}

async function listen(server: FastifyInstance, { host, port }: Config): Promise<string> {
  try {
    return await server.listen({ host, port })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EADDRINUSE' || code === 'EACCES') {
      throw new BadSetting('port', String(port), `cannot be used: ${reason(error)}`)
    }
    throw new BadSetting('host', host, `cannot be used: ${reason(error)}`)
  }
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

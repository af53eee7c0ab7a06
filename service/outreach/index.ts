import type { FastifyInstance } from 'fastify'
import type { Messages } from '../messages/index.ts'
import type { ServerParts } from '../parts.ts'
import type { Sweep } from '../workspaces/retention.ts'
import { addRunActions, addRunReads } from './run-routes.ts'
import { createRuns, type Runs } from './runs.ts'
import { addSequences, addStarts } from './sequence-routes.ts'
import { versionSweep } from './sequences.ts'

interface Parts extends Pick<ServerParts, 'once' | 'base' | 'config' | 'quotas' | 'watch'> {
  readonly messages: Messages
}

export interface Outreach {
  readonly runs: Runs
  readonly sweeps: readonly Sweep[]
  stop(): Promise<void>
}

/** The outreach system: sequences as data, and durable runs of them that send through the messages system. */
export async function addOutreach(server: FastifyInstance, parts: Parts): Promise<Outreach> {
  const { once, base, messages, config, quotas, watch } = parts
  const { sender, delivery, channels } = messages
  const { sendTimeoutMs, webhookHosts } = config
  const runs = await createRuns({ base, once, sender, delivery, channels, sendTimeoutMs, webhookHosts, quotas, watch })
  // Scopes of their own: in one bodies are kept as bytes, in the other they may be empty.
  server.register(async (scope) => addSequences(scope, { once, base, quotas, webhookHosts }))
  server.register(async (scope) => addRunActions(scope, { runs }))
  addStarts(server, { base, runs })
  addRunReads(server, { runs })
  return { runs, sweeps: [versionSweep(base), runs.sweep], stop: () => runs.stop() }
}

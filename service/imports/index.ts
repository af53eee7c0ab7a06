import type { FastifyInstance } from 'fastify'
import type { Finding } from 'onceonly/admin'
import { createSaga, type Description } from 'onceonly/saga'
import type { Consumer } from '../events/events.ts'
import { failureLog } from '../events/log.ts'
import type { ServerParts } from '../parts.ts'
import type { Sweep } from '../workspaces/retention.ts'
import { historyView } from './history.ts'
import { createParser } from './parser.ts'
import { addProjects } from './projects.ts'
import { addReferences } from './references.ts'
import { createImportRemoval, type ImportRemoval, importSweeps } from './retention.ts'
import { addRead, addStart } from './routes.ts'
import { searchImportJob } from './saga.ts'
import { startAnnouncer } from './uploads/announce.ts'
import { addDirect } from './uploads/direct.ts'
import { addHook } from './uploads/hook.ts'
import { openUploads } from './uploads/open.ts'
import { createPromisedBytes } from './uploads/promised.ts'
import { createReceiver } from './uploads/receive.ts'
import { addUpload } from './uploads/routes.ts'
import { SAY_EVERY_MS, sharedStorage } from './uploads/shared.ts'

interface Parts
  extends Pick<ServerParts, 'once' | 'protect' | 'base' | 'outbox' | 'quotas' | 'config' | 'log' | 'watch'> {
  readonly hookSecret: string
}

export interface Imports {
  /** Those who take what others publish. */
  readonly consumers: readonly Consumer[]
  /** The saga, for those who look at its instances. */
  describe(): Description
  readonly sweeps: readonly Sweep[]
  /** For the erasing of a workspace. */
  readonly removal: ImportRemoval
  /** For `doctor`. */
  findings(): Promise<readonly Finding[]>
  stop(): Promise<void>
}

/** The imports system: uploads, the storage's notifications, the saga of every search, and those who read its files. */
export async function addImports(server: FastifyInstance, parts: Parts): Promise<Imports> {
  const { once, protect, base, outbox, quotas, config, log, watch, hookSecret } = parts
  const { requestTimeoutMs: pauseMs } = config
  const on = watch.inbox
  const storage = await openUploads(config)
  const receiver = createReceiver({ once, base, storage, on, log })
  const parser = createParser({ once, base, outbox, storage, on })
  const saga = createSaga({
    definition: searchImportJob,
    ledger: once,
    inbox: { on },
    on: watch.saga,
  })
  const announcer = startAnnouncer({ base, outbox, storage, log })
  const promised = createPromisedBytes(base, quotas)
  const shared = sharedStorage(base, storage)
  // Beside the start, because a bucket that is away must not hold it up.
  const warned = shared.warn(log)
  const saying = setInterval(() => void shared.say().catch(failureLog(log, 'imports.storage_not_said')), SAY_EVERY_MS)
  saying.unref()
  const historyOf = async (searchId: string) => (await saga.history(searchId)).map(historyView)

  addStart(server, { protect, base, outbox, storage, quotas })
  // Scopes of their own: each reads bodies in its own way.
  server.register(async (scope) => addUpload(scope, { base, storage, announcer, promised, quotas, pauseMs }))
  addDirect(server, { base, storage, promised })
  server.register(async (scope) => addHook(scope, { base, storage, receiver, hookSecret, log }))
  addProjects(server, { base, quotas })
  addRead(server, { base, historyOf })
  addReferences(server, { base })

  return {
    consumers: [saga, parser, receiver],
    describe: () => saga.describe(),
    sweeps: importSweeps({ base, storage, config }),
    removal: createImportRemoval({ base, storage }),
    findings: async () => [await shared.finding()],
    async stop() {
      clearInterval(saying)
      await warned
      await Promise.all([receiver.stop(), parser.stop(), saga.stop(), announcer.stop()])
    },
  }
}

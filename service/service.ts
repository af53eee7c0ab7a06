import { mkdir } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import { createLedger, isOnceError } from 'onceonly'
import { accessFinding } from 'onceonly/admin'
import { createConsoleAccess } from 'onceonly/console'
import { frontLimits } from 'onceonly/http/limits'
import type { Outbox } from 'onceonly/outbox'
import type { Around } from 'onceonly/telemetry'
import { adminOn } from './admin/admin.ts'
import { operatorAuditSweep } from './admin/retention.ts'
import { addAdmin } from './admin/routes.ts'
import { addChat } from './chat/index.ts'
import { migrations as chatTables } from './chat/schema.ts'
import { leasesOn, openClaims } from './claims.ts'
import { BadSetting, type Config } from './config.ts'
import { tokensOf } from './console/request.ts'
import { addConsole } from './console/routes.ts'
import { makeDemoCases } from './escalations/cases.ts'
import { createNotices } from './escalations/notices.ts'
import { auditSweep } from './escalations/retention.ts'
import { addEscalations } from './escalations/routes.ts'
import { migrations as escalationTables } from './escalations/schema.ts'
import { createEvents } from './events/events.ts'
import { createFind } from './find.ts'
import { createAdmission } from './http/admission.ts'
import { protectRoutes } from './http/protect.ts'
import { addImports } from './imports/index.ts'
import { migrations as importTables } from './imports/schema.ts'
import { createLog, type Log, scrubbed } from './logs.ts'
import { createLosses } from './losses.ts'
import { addMessages } from './messages/index.ts'
import { migrations as messageTables } from './messages/schema.ts'
import { createMetrics, type Metrics } from './metrics/metrics.ts'
import { addMetrics } from './metrics/routes.ts'
import type { CollectedRoute } from './openapi/collect.ts'
import { addOperations } from './operations/routes.ts'
import { addOutreach } from './outreach/index.ts'
import { migrations as outreachTables } from './outreach/schema.ts'
import { createRequestRecords } from './requests.ts'
import { createServer } from './server.ts'
import { endAll, endTogether } from './stopping.ts'
import { type Base, openBase } from './store.ts'
import { createWatch } from './watch.ts'
import { enforceAccess } from './workspaces/authenticate.ts'
import { makeDemoWorkspace, readSecrets } from './workspaces/demo.ts'
import { createOwnData } from './workspaces/erase.ts'
import { createQuotas } from './workspaces/quotas.ts'
import { dueOf, startRetention } from './workspaces/retention.ts'
import { retentionRows } from './workspaces/retention-rows.ts'
import { migrations as workspaceTables } from './workspaces/schema.ts'
import { createWorkspaces } from './workspaces/workspaces.ts'

export interface Service {
  readonly url: string
  /** The API key of the demo workspace; null without one. */
  readonly demoKey: string | null
  readonly log: Log
  /** Every route, with what it declares. */
  readonly routes: readonly CollectedRoute[]
  stop(): Promise<void>
}

/** Puts the parts together in the order in which they need each other, and takes them apart the other way round. */
export async function startService(config: Config): Promise<Service> {
  await makeFolder(config)
  const secrets = await readSecrets(config)
  const log = createLog(config)
  const onLost = createLosses(log, () => metrics.telemetry)
  const claims = await openClaims(config, log, onLost)
  const base = openBase(config, claims?.store ?? null, onLost)
  const metrics: Metrics = createMetrics(base, claims?.store ?? null)
  const { telemetry } = metrics
  const watch = createWatch(log, telemetry)
  const admission = createAdmission()
  const around: Around = (part, command, work) =>
    telemetry.around(part, command, () => admission.around(part, command, work))
  const once = createLedger({ store: base.store, on: watch.ledger, around })
  const events = createEvents({ config, base, once, log, watch })
  const leases = leasesOn(claims, once, { on: watch.ledger, around })
  const requests = createRequestRecords()
  const { server, routes } = await createServer(base, log, config, metrics, admission, requests)
  // In the order in which they began.
  const systems: { stop(): Promise<void> }[] = []
  const live: { stop(): void }[] = []
  const stop = async () => {
    // Nothing new comes in; then running work finishes; then its messages are published, as far as it goes.
    events.hold()
    // Open pages would keep their connections forever.
    for (const each of live) each.stop()
    await endAll([
      () => server.close(),
      () => endTogether(systems),
      () => events.stop(),
      () => leases.stop(),
      () => once.stop(),
      () => claims?.stop(),
      () => base.stop(),
    ])
  }
  try {
    await makeTables(config, base, events.outbox)
    const workspaces = createWorkspaces(base)
    const { operatorToken } = secrets
    enforceAccess(server, workspaces, operatorToken)
    const quotas = createQuotas(config)
    const protect = protectRoutes(server.log, once)
    await makeDemoWorkspace(workspaces, secrets)
    if (config.demo) await makeDemoCases(base)
    const leased = claims === null ? null : { store: claims.store, ledger: leases.ledger }
    const admin = adminOn({ once, leased, base })
    await admin.kept.write(retentionRows(config))
    addAdmin(server, { once, base, admin, workspaces, testClock: config.testClock })
    const access = createConsoleAccess(tokensOf(config, operatorToken))
    addMetrics(server, { config, metrics, access })
    addEscalations(server, { once, protect, base })
    const messages = addMessages(server, {
      once: leases.ledger,
      ledger: once,
      base,
      config,
      quotas,
      watch,
    })
    systems.push(messages)
    const outreach = await addOutreach(server, { once, base, messages, config, quotas, watch })
    systems.push(outreach)
    live.push(outreach.streams)
    const imports = await addImports(server, {
      once,
      protect,
      base,
      outbox: events.outbox,
      quotas,
      config,
      log,
      watch,
      hookSecret: secrets.hookSecret,
    })
    systems.push(imports)
    const { demoKey, hookSecret } = secrets
    const chat = addChat(server, { base, workspaces, config, quotas, demoKey, hookSecret, access, log, watch })
    systems.push(chat)
    const notices = createNotices({ once, base, watch })
    systems.push(notices)
    addOperations(server, { ledgers: [once, leases.ledger], routes })
    const { runs, campaigns, streams } = outreach
    const sagas = () => [imports.describe()]
    const { rooms } = chat
    const findings = async () => [...(await imports.findings()), await accessFinding('data folder', ownFolders(config))]
    const find = createFind({ base, admin, requests })
    const own = createOwnData({ base, admin, imports: imports.removal })
    const shown = { runs, campaigns, streams, sagas, rooms, findings, find, own }
    live.push(addConsole(server, { admin, base, quotas, config, metrics, operatorToken, routes, ...shown }))
    const audits = [operatorAuditSweep(admin, config.retainAuditDays), auditSweep(base, config.retainBusinessAuditDays)]
    const sweeps = [...messages.sweeps, ...outreach.sweeps, ...imports.sweeps, ...chat.sweeps, ...audits]
    systems.push(startRetention({ sweeps, due: (all) => dueOf(base, all), everyMs: config.sweepEveryMs, log }))
    events.begin([...imports.consumers, notices])
    return { url: await listen(server, config), demoKey: secrets.demoKey, log, routes, stop }
  } catch (error) {
    // Whatever stops the start must not keep the process alive.
    await stop()
    throw error
  }
}

// A setting that only the system can judge is refused like any other: in one line that names it.

/** Of folders that we make; one that is there may be shared on purpose. */
const OWNER_ONLY_FOLDER = 0o700

async function makeFolder({ dataFolder }: Config): Promise<void> {
  try {
    await mkdir(dataFolder, { recursive: true, mode: OWNER_ONLY_FOLDER })
  } catch (error) {
    throw new BadSetting('dataFolder', dataFolder, `cannot be used: ${reason(error)}`)
  }
}

/** What is in them should be read by the server alone. */
function ownFolders({ dataFolder, uploads }: Config): readonly string[] {
  return uploads.kind === 'folder' ? [dataFolder, uploads.path] : [dataFolder]
}

/** The first that is asked of the store: here it is known whether it is there, and lets us in. */
async function makeTables(config: Config, { sql }: Base, outbox: Outbox): Promise<void> {
  try {
    await sql.migrate('workspaces', workspaceTables)
    await sql.migrate('escalations', escalationTables)
    await sql.migrate('messages', messageTables)
    await sql.migrate('imports', importTables)
    await sql.migrate('outreach', outreachTables)
    await sql.migrate('chat', chatTables)
    await outbox.prepare()
  } catch (error) {
    // What has no code is a fault of ours, and is reported with its trace.
    if (!(error instanceof Error && 'code' in error)) throw error
    const wrong = `cannot be used: ${scrubbed(reason(error))}`
    const { storeUrl, dataFolder } = config
    throw storeUrl === null ? new BadSetting('dataFolder', dataFolder, wrong) : new BadSetting('storeUrl', '', wrong)
  }
}

/** What the system says about an address, not about a port. */
const BAD_ADDRESS = ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EAI_AGAIN', 'EINVAL', 'ENOTFOUND']

async function listen(server: FastifyInstance, { host, port }: Config): Promise<string> {
  // A route or a plugin that fails fails here, and has nothing to do with where we listen.
  await server.ready()
  try {
    // The greeting says where; a program reads it in the event of the start.
    return await server.listen({
      host,
      port,
      backlog: frontLimits.backlog,
      listenTextResolver: () => 'The server listens',
    })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EADDRINUSE' || code === 'EACCES') {
      throw new BadSetting('port', String(port), `cannot be used: ${reason(error)}`)
    }
    if (!BAD_ADDRESS.includes(String(code))) throw error
    throw new BadSetting('host', host, `cannot be used: ${reason(error)}`)
  }
}

/** What went wrong, without the library's advice for a process that continues. */
function reason(error: unknown): string {
  if (isOnceError(error)) return error.message.replace(error.next, '').trim()
  return error instanceof Error ? error.message : String(error)
}

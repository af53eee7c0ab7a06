import { describe, openAnswers, type ServedRoute } from '../../http/protocol/describe.ts'
import type { Audit } from '../core/audit.ts'
import { time, whole, withDefault } from './argument.ts'
import { act, read } from './command.ts'
import { paging, since, sinceTime, timeOf } from './paging.ts'

/** Each round looks at a bounded share of the records. */
export const SWEEP_ROUNDS_MOST = 10_000

export const upkeepCommands = {
  sweep: act({
    summary: 'remove expired records now; servers do the same by themselves',
    arguments: {
      rounds: withDefault(whole('how many rounds at the most', { least: 1, most: SWEEP_ROUNDS_MOST }), 1),
    },
    target: () => ({}),
    question: () => null,
    async act({ admin, progress }, { rounds }) {
      let removed = 0
      for (let round = 0; round < rounds; round++) {
        const gone = await admin.sweep()
        removed += gone
        if (gone === 0) break
        progress()
      }
      return { removed }
    },
  }),
  migrate: act({
    summary: 'bring the tables of every room up to date',
    details:
      'Servers do the same when they start; this is for deployments whose servers may not change the schema. Forward only,\nand safe while servers run.',
    arguments: {},
    isLocal: true,
    target: () => ({}),
    question: () => 'Change the schema of the store?',
    async act({ admin }) {
      return { rows: [...(await admin.migrate())].map(([room, version]) => ({ room, version })) }
    },
  }),
  migrations: read({
    summary: 'the SQL that `migrate` would still run',
    details: 'For deployments whose schema is changed by another tool. Nothing is changed, not even an empty store.',
    arguments: {},
    path: '/migrations',
    read: async ({ admin }) => ({ statements: await admin.migrations() }),
  }),
  doctor: read({
    summary: 'is the store configured so that nothing acknowledged is lost?',
    details: 'Durability, eviction, clock, connections. Exits with 1 when something is dangerous.',
    arguments: {},
    path: '/doctor',
    read: async ({ admin }) => ({ findings: await admin.doctor() }),
  }),
  restored: act({
    summary: 'a backup was restored: raise the fences, and refuse keys of the time that is gone',
    details:
      'Run it once, before the servers start again. Keys that are UUIDv7 of the time between the backup and now are refused where they\nhave no record and their effect must not run twice; operations with other keys are listed as a risk.',
    arguments: {
      at: time('when the backup was made: 2026-11-18T10:00:00Z, milliseconds since 1970, or a time ago such as 2h'),
    },
    isLocal: true,
    target: ({ at }) => ({ at }),
    question: () => 'Was this store restored from a backup of that time, and are its servers stopped?',
    act: async (context, { at }) => await context.admin.restored((await timeOf(context, at)) ?? 0),
  }),
  audit: read({
    summary: 'what operators did, newest first',
    arguments: { ...paging, since: sinceTime },
    needs: ['audit'],
    path: '/audit',
    async read(context, { limit, cursor = null, since: from }) {
      const page = await (context.admin.audit as Audit).list({ limit, cursor })
      return { ...page, rows: await since(context, from, page.rows, ({ at }) => at) }
    },
  }),
  checklist: read({
    summary: 'the design checklist of every declared route',
    details: 'Exits with 1 when an answer is open, so that it can stand before a deploy.',
    arguments: {},
    needs: ['routes'],
    path: '/checklist',
    async read({ routes = () => [] }) {
      const served = routes()
      return { routes: served.map(checklistOf), open: openAnswers(served) }
    },
  }),
}

function checklistOf(route: ServedRoute) {
  return {
    method: route.method,
    path: route.path,
    kind: route.kind,
    operation: 'definition' in route ? (route.definition.name ?? null) : null,
    answers: describe(route),
  }
}

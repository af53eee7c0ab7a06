import assert from 'node:assert/strict'
import { test } from 'node:test'
import type * as Logs from '../../../src/streams/log/sql.ts'
import type * as Orders from '../../../src/streams/log/sql-order.ts'
import { clockOf, onSqlite } from '../../support/streams/stores.ts'
import { importMutated, type Mutant } from '../simulation/mutate.ts'
import { compareLogs, sameNames } from './log-history.ts'
import { compareOrders } from './order-history.ts'

/** Histories within which each mutant must be noticed. Most take one or two. */
const SEEDS = 24

type Rule = Omit<Mutant, 'file'>

const write: readonly Rule[] = [
  {
    name: 'an entry that was merged before is merged again',
    find: 'if (entry.n <= head) return null',
    replace: '',
  },
  {
    name: 'a log may have holes',
    find: 'if (entry.n > head + 1) {',
    replace: 'if (false) {',
  },
  {
    name: 'a session that was fenced writes on',
    find: "if (generation !== null && open.sessions.get(client) !== generation) return { kind: 'fenced' }",
    replace: '',
  },
  {
    name: 'a server needs a session',
    find: 'if (generation !== null && open.sessions',
    replace: 'if (open.sessions',
  },
  {
    name: 'a number may be skipped',
    find: "if (cseq > floor) return { kind: 'gap', floor }",
    replace: '',
  },
  {
    name: 'the same number is accepted twice',
    find: 'if (cseq < floor) {',
    replace: 'if (false) {',
  },
  {
    name: 'one number may have two bodies',
    find: 'return known.digest === digest ?',
    replace: 'return true ?',
  },
  {
    name: 'forks between regions are not reported',
    find: 'return known === undefined ? null : forkOf({ ...known.place, digest: known.digest }, entry)',
    replace: 'return null',
  },
  {
    name: 'a second copy is shown',
    find: 'const copy = cseq < floor',
    replace: 'const copy = false',
  },
  {
    name: 'the first copy is hidden',
    find: 'const copy = cseq < floor',
    replace: 'const copy = cseq <= floor',
  },
  {
    name: 'the next number is the last one',
    find: 'floor: cseq + 1,',
    replace: 'floor: cseq,',
  },
  {
    name: 'places of a log are not consecutive',
    find: 'n: (open.heads.get(open.log) ?? 0) + 1 }',
    replace: 'n: (open.heads.get(open.log) ?? 0) + 2 }',
  },
  {
    name: "a message does not name its sender's previous one",
    find: 'const after = sender?.last ?? null',
    replace: 'const after = null',
  },
  {
    name: 'a reply to what was never merged is stored',
    find: 'identity.cseq >= sender.floor) return undefined',
    replace: 'identity.cseq >= sender.floor) return open.senders.values().next().value?.last',
  },
  {
    name: 'a reply does not have its target among its causes',
    find: 'const context = withCause(seen, target)',
    replace: 'const context = seen',
  },
  {
    name: 'a reply to what was trimmed has nothing of its sender among its causes',
    find: '?.place ?? sender.last',
    replace: '?.place ?? { log: open.log, n: 0 }',
  },
  {
    name: 'a message of a server is not recognised',
    find: 'if (isPublished) open.published.push({ client, digest, place })',
    replace: '',
  },
]

const log: readonly Rule[] = [
  {
    name: 'an older generation enters',
    find: "if (before > generation) return { kind: 'fenced', generation: before }",
    replace: '',
  },
  {
    name: 'a clone enters',
    find: "if (before === generation && row?.instance !== instance) return { kind: 'cloned' }",
    replace: '',
  },
  {
    name: 'a position is found one entry too late',
    find: 'm.n = ${count} + 1) as at',
    replace: 'm.n = ${count} + 2) as at',
  },
  {
    name: 'what comes right after a position is passed over',
    find: 'at = Math.min(at, Number(row.at) - 1)',
    replace: 'at = Math.min(at, Number(row.at))',
  },
  {
    name: 'a position that was trimmed is found',
    find: 'if (rows.some(({ count: have, trimmed }) => Number(have) < Number(trimmed))) {',
    replace: 'if (false) {',
  },
  {
    name: 'a reader gets the entry again at which it stands',
    find: 'and at > ? order by at limit ?',
    replace: 'and at >= ? order by at limit ?',
  },
]

const state: readonly Rule[] = [
  {
    name: 'a resend is answered with the place of any copy',
    find: "and k.cseq = ${big('cseq')} and k.copy = 0`",
    replace: "and k.cseq = ${big('cseq')} and k.copy = 1`",
  },
  {
    name: 'the head of a log is not kept',
    find: 'do update set head = excluded.head`',
    replace: 'do nothing`',
  },
  {
    name: 'the floor of a sender is not kept',
    find: 'do update set floor = excluded.floor, last_log = excluded.last_log,\n      last_n = excluded.last_n, seen_at = excluded.seen_at`',
    replace: 'do nothing`',
  },
]

const image: readonly Rule[] = [
  {
    name: 'an image takes a log back',
    find: 'where onceonly_stream_logs.head < excluded.head`',
    replace: 'where true`',
  },
  {
    name: 'an image takes a sender back',
    find: 'where onceonly_stream_senders.floor < excluded.floor`',
    replace: 'where true`',
  },
  {
    name: 'an image leaves out messages of servers',
    find: 'published: published.map(',
    replace: 'published: published.slice(1).map(',
  },
  {
    name: "a peer knows this region's own log better",
    find: '.filter(([log]) => log !== own?.log)',
    replace: '',
  },
]

const trim: readonly Rule[] = [
  {
    name: 'what is trimmed is not marked',
    find: 'await tx.query(mark, [upTo, ...place])',
    replace: '',
  },
  {
    name: 'the newest goes with the oldest',
    find: 'Number(head.at) - mostEntries]',
    replace: 'Number(head.at) - mostEntries + 1]',
  },
  {
    name: 'messages of servers are forgotten with their entries',
    find: '...place, publishedMs, ...place, mostPublished - 1]',
    replace: '...place, keep.olderThanMs, ...place, mostPublished - 1]',
  },
  {
    name: 'messages of servers are not forgotten',
    find: '...place, publishedMs, ...place, mostPublished - 1]',
    replace: '...place, 1e12, ...place, mostPublished - 1]',
  },
  {
    name: 'people are not forgotten',
    find: 'const old = [...place, clientsMs, ...place, clientsMs]',
    replace: 'const old = [...place, 1e12, ...place, 1e12]',
  },
]

const lease: readonly Rule[] = [
  {
    name: 'a lease that holds is taken away',
    find: 'WHERE t.${holder} = excluded.${holder} OR t.${freeAt} <= ${clock} RETURNING',
    replace: 'WHERE true RETURNING',
  },
  {
    name: 'a lease that lapsed keeps its fence',
    find: 'CASE WHEN t.${holder} = excluded.${holder} AND t.${freeAt} > ${clock} THEN 0 ELSE 1 END',
    replace: 'CASE WHEN t.${holder} = excluded.${holder} THEN 0 ELSE 1 END',
  },
  {
    name: 'a successor has the fence of its predecessor',
    find: 'CASE WHEN t.${holder} = excluded.${holder} AND t.${freeAt} > ${clock} THEN 0 ELSE 1 END',
    replace: 'CASE WHEN t.${freeAt} > ${clock} THEN 1 ELSE 0 END',
  },
]

const order: readonly Rule[] = [
  {
    name: 'a holder that lost the lease keeps appending',
    find: 'if (row === undefined || Number(row.fence) !== batch.fence)',
    replace: 'if (row === undefined)',
  },
  {
    name: 'a message gets a second place',
    find: 'where not exists (select 1 from onceonly_stream_order_rows as o where o.room = ? and ${SAME})',
    replace: "where ? <> '' or not exists (select 1 from onceonly_stream_order_rows as o where ${SAME})",
  },
  {
    name: 'a message gets two places in one batch',
    find: 'const list = JSON.stringify([...once.values()])',
    replace: 'const list = JSON.stringify(batch.identities)',
  },
  {
    name: 'places have a gap',
    find: 'const head = Number(row.head) + added.length',
    replace: 'const head = Number(row.head) + batch.identities.length',
  },
  {
    name: 'what the order covers goes back',
    find: 'furthest(JSON.parse(row.position) as Position, batch.position)',
    replace: 'batch.position',
  },
  {
    name: 'a reader gets a place twice',
    find: 'where room = ? and g > ? order by g',
    replace: 'where room = ? and g >= ? order by g',
  },
]

const of = (file: string, rules: readonly Rule[]) => rules.map((rule): Mutant => ({ ...rule, file }))

const logMutants = [
  ...of('src/streams/log/sql-write.ts', write),
  ...of('src/streams/log/sql.ts', log),
  ...of('src/streams/log/sql-state.ts', state),
  ...of('src/streams/log/sql-image.ts', image),
  ...of('src/streams/log/sql-trim.ts', trim),
]

for (const mutant of logMutants) {
  test(`the comparison with the log in memory notices when ${mutant.name}`, async (context) => {
    const { createSqlRoomLog } = await importMutated<typeof Logs>('src/streams/log/sql.ts', mutant)
    await onSqlite(async ({ store }) => {
      const clock = clockOf(store)
      const processes = [createSqlRoomLog({ store, region: 'eu', runtime: sameNames })]
      const noticed = await firstOf((seed) => compareLogs({ processes, clock, seed }))
      context.diagnostic(noticed)
    })
  })
}

for (const mutant of [...of('src/ledger/store/leases.ts', lease), ...of('src/streams/log/sql-order.ts', order)]) {
  test(`the comparison with the order in memory notices when ${mutant.name}`, async (context) => {
    const { createSqlOrderLog } = await importMutated<typeof Orders>('src/streams/log/sql-order.ts', mutant)
    await onSqlite(async ({ store }) => {
      const clock = clockOf(store)
      const processes = [createSqlOrderLog({ store })]
      const noticed = await firstOf((seed) => compareOrders({ processes, clock, seed }))
      context.diagnostic(noticed)
    })
  })
}

async function firstOf(compare: (seed: number) => Promise<string | null>): Promise<string> {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const difference = await compare(seed)
    if (difference !== null) return difference
  }
  return assert.fail(`not noticed in ${SEEDS} histories`)
}

import { limits } from '../../core/limits.ts'
import type { BusyCaller, Tally, Upkeep } from '../../store/port.ts'
import { stateCode } from '../../store/row.ts'
import { nowSql } from './clock-sql.ts'
import type { Borrowed, Core } from './core.ts'
import { fenceOf } from './cursor.ts'
import type { Names } from './names.ts'
import { text } from './statement.ts'

export function createUpkeep(core: Core): Upkeep {
  const { names } = core
  return {
    sweep: (cursor, limit, call) =>
      core.write(call, async (on) => {
        const after = cursor === null ? 0 : fenceOf(cursor)
        const [row] = await on.rows(sweepStatement(names), [after, limit])
        const looked = Number(row?.['looked'])
        const end = looked < limit
        if (end) await forgetTallies(on, names)
        return { cursor: end ? null : text(row ?? {}, 'last'), looked, removed: Number(row?.['removed']) }
      }),
    tally: ({ records, callers }, call) =>
      core.write(call, async (on) => {
        if (records.length > 0) await countOnRecords(on, names, records)
        if (callers.length > 0) await countCallers(on, names, callers)
      }),
  }
}

/**
 * One step: a bounded piece of the table along the fence, which is about the order on disk. What is due is locked
 * without waiting and looked at again in its newest version, because a claim may have begun a new life of it meanwhile:
 * then it stands in another place, and stays.
 *
 * Rows are found by their place on disk. By their ids it took three times as long: two looks into a large index for each.
 *
 * Past its end nothing of a record is kept; past replay only the fact that the key was used.
 */
function sweepStatement(names: Names): string {
  const replayable = `state IN (${stateCode.succeeded}, ${stateCode.failed_terminal})`
  return `
    WITH moment AS MATERIALIZED (SELECT ${nowSql(names)} AS now),
    page AS MATERIALIZED (
      SELECT ctid AS place, fence, gone_at <= now AS gone, expires_at <= now AND ${replayable}
        AND (outcome IS NOT NULL OR pointer IS NOT NULL OR detail IS NOT NULL) AS over
      FROM ${names.records}, moment WHERE fence > $1::bigint ORDER BY fence LIMIT $2::int
    ),
    due AS MATERIALIZED (
      SELECT r.ctid AS place FROM ${names.records} AS r
      WHERE r.ctid = ANY (ARRAY(SELECT place FROM page WHERE gone OR over)) FOR UPDATE SKIP LOCKED
    ),
    removed AS (
      DELETE FROM ${names.records} AS r USING moment
      WHERE r.ctid = ANY (ARRAY(SELECT place FROM due)) AND r.gone_at <= now
      RETURNING 1
    ),
    emptied AS (
      UPDATE ${names.records} AS r SET outcome = NULL, pointer = NULL, detail = NULL FROM moment
      WHERE EXISTS (SELECT 1 FROM page WHERE over AND NOT coalesce(gone, false))
        AND r.ctid = ANY (ARRAY(SELECT place FROM due)) AND r.gone_at > now AND r.expires_at <= now AND r.${replayable}
    )
    SELECT (SELECT count(*) FROM page) AS looked, (SELECT max(fence) FROM page) AS last,
      (SELECT count(*) FROM removed) AS removed`
}

/** Once per round of the sweep, and bounded like every other step of it. */
async function forgetTallies({ rows }: Borrowed, names: Names): Promise<void> {
  await rows(
    `DELETE FROM ${names.tallies} WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM ${names.tallies} WHERE bucket_at <= ${nowSql(names)} - ${limits.tallyKeepMs}
       LIMIT ${limits.tallyRows} FOR UPDATE SKIP LOCKED
     ))`,
  )
}

/** Counting must never block: a locked row is not counted this time. */
async function countOnRecords({ rows }: Borrowed, names: Names, records: Tally['records']): Promise<void> {
  await rows(
    `WITH free AS MATERIALIZED (
       SELECT r.id FROM ${names.records} AS r WHERE r.id = ANY ($1::uuid[]) ORDER BY r.id FOR UPDATE SKIP LOCKED
     )
     UPDATE ${names.records} AS r SET replays = r.replays + u.replays, conflicts = r.conflicts + u.conflicts,
       in_progress = r.in_progress + u.in_progress,
       repeated_at = greatest(r.repeated_at, (SELECT ${nowSql(names)}) - u.last_ago_ms)
     FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
       AS u(id, replays, conflicts, in_progress, last_ago_ms)
     WHERE r.id = u.id AND r.id = ANY (ARRAY(SELECT id FROM free))`,
    [
      records.map((record) => record.id),
      records.map((record) => record.replays),
      records.map((record) => record.conflicts),
      records.map((record) => record.inProgress),
      records.map((record) => Math.floor(record.lastAgoMs)),
    ],
  )
}

/** In one order, so that two processes that count the same callers never wait for each other in a circle. */
async function countCallers({ rows }: Borrowed, names: Names, callers: readonly BusyCaller[]): Promise<void> {
  await rows(
    `INSERT INTO ${names.tallies} AS t (bucket_at, tenant, caller, operation, claims, replays, conflicts, in_progress)
     SELECT m.now - m.now % ${limits.tallyBucketMs}, u.tenant, u.caller, u.operation,
       sum(u.claims), sum(u.replays), sum(u.conflicts), sum(u.in_progress)
     FROM (SELECT ${nowSql(names)} AS now) AS m,
       unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
       AS u(tenant, caller, operation, claims, replays, conflicts, in_progress)
     GROUP BY m.now, u.tenant, u.caller, u.operation
     ORDER BY u.tenant, u.caller, u.operation
     ON CONFLICT (bucket_at, tenant, caller, operation) DO UPDATE SET claims = t.claims + excluded.claims,
       replays = t.replays + excluded.replays, conflicts = t.conflicts + excluded.conflicts,
       in_progress = t.in_progress + excluded.in_progress`,
    [
      callers.map((busy) => busy.tenant),
      callers.map((busy) => busy.caller),
      callers.map((busy) => busy.operation),
      callers.map((busy) => busy.claims),
      callers.map((busy) => busy.replays),
      callers.map((busy) => busy.conflicts),
      callers.map((busy) => busy.inProgress),
    ],
  )
}

import type { LedgerRecord } from '../../core/record.ts'
import { goneAtOf } from '../../core/record.ts'
import type { RecordTally, Upkeep } from '../../store/port.ts'
import type { CallerStatistics } from './callers.ts'
import type { Core } from './core.ts'
import { removeRecord, UNCOUNTED } from './tables.ts'

/** Sweeps under way at once: one per ledger on this store, and a few that were given up. */
const SWEEPS = 16

export function createUpkeep(core: Core, callers: CallerStatistics): Upkeep {
  const { tables, time } = core
  // A map's iterator continues where it stopped, whatever was added or removed meanwhile: a cursor stands for one.
  const sweeps = new Map<string, Iterator<LedgerRecord>>()
  let started = 0

  function resume(cursor: string | null): { name: string; rows: Iterator<LedgerRecord> } {
    const known = cursor === null ? undefined : sweeps.get(cursor)
    if (cursor !== null && known !== undefined) return { name: cursor, rows: known }
    // Unknown cursors start over: the oldest sweep may have made room for a newer one.
    const name = String(++started)
    const oldest = sweeps.keys().next().value
    if (sweeps.size >= SWEEPS && oldest !== undefined) sweeps.delete(oldest)
    return { name, rows: tables.records.values() }
  }

  return {
    sweep: async (cursor, limit) => {
      core.checkOpen()
      const { name, rows } = resume(cursor)
      sweeps.set(name, rows)
      const now = time.nowMs()
      let removed = 0
      for (let looked = 0; looked < limit; looked++) {
        const { value: record, done } = rows.next()
        if (done === true) {
          sweeps.delete(name)
          return { cursor: null, looked, removed }
        }
        if (sweepOne(core, record, now)) removed += 1
      }
      return { cursor: name, looked: limit, removed }
    },
    tally: async ({ records, callers: busy }) => {
      core.checkOpen()
      for (const each of records) addCounts(core, each, time.nowMs())
      callers.add(busy)
    },
  }
}

/** True when the record was removed. Past replay only the fact that the key was used is worth keeping. */
function sweepOne({ tables }: Core, record: LedgerRecord, now: number): boolean {
  const goneAt = goneAtOf(record)
  if (goneAt !== null && goneAt <= now) {
    removeRecord(tables, record.id)
    return true
  }
  if (record.state !== 'succeeded' && record.state !== 'failed_terminal') return false
  if (record.expiresAt <= now && record.outcome.data !== null) {
    const outcome = { kept: record.outcome.kept, data: null }
    const { facts: _facts, ...rest } = record
    tables.records.set(record.id, { ...rest, outcome, pointer: null, history: [] })
  }
  return false
}

function addCounts({ tables }: Core, { id, lastAgoMs, ...added }: RecordTally, now: number): void {
  if (!tables.records.has(id)) return
  const old = tables.counts.get(id) ?? UNCOUNTED
  tables.counts.set(id, {
    replays: old.replays + added.replays,
    conflicts: old.conflicts + added.conflicts,
    inProgress: old.inProgress + added.inProgress,
    repeatedAt: Math.max(old.repeatedAt ?? 0, now - lastAgoMs),
  })
}

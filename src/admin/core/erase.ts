import type { Ledger } from '../../ledger/ledger.ts'
import type { Erased } from '../../ledger/operator.ts'
import type { RecordFilter } from '../../ledger/store/port.ts'

/** The data to erase: everything of a tenant, or what belongs to one person. */
export type ErasedOwner =
  | { readonly kind: 'workspace'; readonly tenant: string }
  /** A caller, or what records mention: a key, a resource, a note. Of one tenant, or of all. */
  | { readonly kind: 'person'; readonly person: string; readonly tenant?: string }

/** What a server keeps in tables of its own. */
export interface OwnData {
  /** What there is to erase, and what would be left. */
  count(owner: ErasedOwner): Promise<OwnErased>
  /** The same when it is gone; `progress` is called after each bounded step. */
  erase(owner: ErasedOwner, progress: () => void): Promise<OwnErased>
}

export interface OwnErased {
  /** How much, by what it is. */
  readonly counts: Readonly<Record<string, number>>
  /** What was not erased, because its outcome is still to be found out: erase once more when it has ended. */
  readonly left: Left
}

export interface Left {
  readonly count: number
  /** Some of it, by its ids. */
  readonly some: readonly LeftOver[]
}

export interface LeftOver {
  readonly what: string
  readonly id: string
  /** `unknown`: it may have happened, and an operator decides. */
  readonly why: 'running' | 'unknown'
}

export const nothingLeft: Left = { count: 0, some: [] }

export interface ErasedRecords {
  /** Records that said something, and whose keys stay taken. */
  readonly records: number
  /** Attempts that still run: erase once more when they have ended. */
  readonly running: number
}

export interface Erasing {
  /** Tables that were not made by the library: a program keeps more of its tenants in this store than records. */
  programTables(): Promise<readonly string[]>
  /** Changes nothing. */
  count(owner: ErasedOwner): Promise<ErasedRecords>
  erase(owner: ErasedOwner, progress: () => void): Promise<ErasedRecords>
}

const PAGE_ROWS = 100

function filtersOf(owner: ErasedOwner): readonly RecordFilter[] {
  if (owner.kind === 'workspace') return [{ tenant: owner.tenant, ended: true }]
  const within = owner.tenant === undefined ? {} : { tenant: owner.tenant }
  return [
    { ...within, caller: owner.person, ended: true },
    { ...within, mentions: owner.person, ended: true },
  ]
}

export function createErasing(
  ledger: Pick<Ledger<unknown>, 'list' | 'erase'>,
  programTables: Erasing['programTables'],
): Erasing {
  async function each(
    owner: ErasedOwner,
    visit: (id: string, isRunning: boolean) => Promise<Erased>,
    progress: () => void,
  ): Promise<ErasedRecords> {
    const seen = new Set<string>()
    const counts = { erased: 0, empty: 0, running: 0, gone: 0 }
    for (const filter of filtersOf(owner)) {
      let cursor: string | null = null
      do {
        const page: Awaited<ReturnType<typeof ledger.list>> = await ledger.list(filter, { limit: PAGE_ROWS, cursor })
        for (const { record } of page.rows) {
          if (seen.has(record.id)) continue
          seen.add(record.id)
          counts[await visit(record.id, record.state === 'in_progress')]++
        }
        cursor = page.cursor
        progress()
      } while (cursor !== null)
    }
    return { records: counts.erased, running: counts.running }
  }

  return {
    programTables,
    count: (owner) =>
      each(
        owner,
        async (_id, isRunning) => (isRunning ? 'running' : 'erased'),
        () => undefined,
      ),
    erase: (owner, progress) => each(owner, (id) => ledger.erase(id), progress),
  }
}

import type { MigrationStep } from './migrations.ts'

/** The room under which the ledger's own tables are listed in `onceonly_migrations`. */
export const LEDGER_ROOM = 'ledger'

/**
 * The versions of the ledger's own tables, counted alike on every SQL store; each store holds the statements of its
 * dialect for each of them. Forward only: append, never change one that was released.
 */
const ledgerVersions = [
  // 1: records, unknowns, meta, tallies.
  { version: 1, oldestCode: 1 },
] as const satisfies readonly MigrationStep[]

type LedgerVersion = (typeof ledgerVersions)[number]['version']

export interface LedgerMigration extends MigrationStep {
  readonly statements: readonly string[]
}

/** Typed so that a dialect cannot forget a version. */
export function ledgerMigrations(statements: Readonly<Record<LedgerVersion, readonly string[]>>): LedgerMigration[] {
  return ledgerVersions.map((step) => ({ ...step, statements: statements[step.version] }))
}

import { OnceError } from '../core/errors.ts'

/**
 * `auto`: the store creates and updates its tables by itself. `check`: it changes nothing, and refuses to work on tables
 * that are not up to date, for deployments whose servers may not change the schema.
 */
export type MigrateMode = 'auto' | 'check'

export function checkMigrateMode(caller: string, mode: MigrateMode): MigrateMode {
  if (mode === 'auto' || mode === 'check') return mode
  throw new OnceError('bad_option', `${caller}: \`migrate\` must be 'auto' or 'check', not ${JSON.stringify(mode)}.`)
}

export function tablesTooOld(room: string, pending: readonly MigrationStep[]): OnceError<'schema_too_old'> {
  const versions = pending.map(({ version }) => version).join(', ')
  const text = `The tables of \`${room}\` lack version ${versions}, and \`migrate: 'check'\` forbids to change them.`
  return new OnceError('schema_too_old', text, { details: { room, pending: pending.map(({ version }) => version) } })
}

/** A step of one room's schema, whatever its dialect. */
export interface MigrationStep {
  /** Consecutive from 1. */
  readonly version: number
  /** Code that knows fewer versions than this must not run on the result. */
  readonly oldestCode: number
}

/**
 * Which steps are still to be run, given the steps that this code knows and those that the store remembers. The stores
 * ask it inside the transaction that runs the answer, so that many processes may ask at once.
 *
 * A store that is newer than the code is fine as long as every migration in it allows this code: that is what makes a
 * rolling deploy, and rolling it back, work.
 */
export function pendingMigrations<S extends MigrationStep>(
  room: string,
  known: readonly S[],
  applied: readonly MigrationStep[],
): readonly S[] {
  known.forEach((step, index) => {
    if (step.version !== index + 1) {
      throw new OnceError('bad_option', `Migration ${index + 1} of \`${room}\` has the version ${step.version}.`)
    }
  })
  const codeVersion = known.length
  for (const { version, oldestCode } of applied) {
    if (oldestCode <= codeVersion) continue
    throw new OnceError(
      'schema_too_new',
      `The tables of \`${room}\` are at version ${version}, which needs code that knows version ${oldestCode}; this code knows ${codeVersion}.`,
      { details: { room, version, oldestCode, codeVersion } },
    )
  }
  const storeVersion = applied.reduce((newest, { version }) => Math.max(newest, version), 0)
  return known.slice(storeVersion)
}

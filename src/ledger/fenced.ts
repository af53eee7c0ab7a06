import { OnceError } from './core/errors.ts'
import type { Fence } from './core/identity.ts'

/** Pieces of an UPDATE that a late writer cannot pass: the row remembers the largest fence that wrote it. */
export interface FencedWrite {
  /** For the SET list; takes the fence as its one value. */
  readonly set: string
  /** For the WHERE clause; takes the fence as its one value. No row updated means that a later attempt was there. */
  readonly where: string
  readonly fence: Fence
}

/**
 * Guards the user's own rows by fence: `update orders set paid = 1, ${w.set} where id = ? and ${w.where}`, with the values
 * in that order. This is what stops a process that was paused just before its write, where the target is a table.
 */
export function fencedWrite(attempt: { readonly fence: Fence }, column = 'fence'): FencedWrite {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(column)) {
    throw new OnceError('bad_option', `\`${column}\` is not a plain column name.`, { details: { option: 'column' } })
  }
  return { set: `${column} = ?`, where: `(${column} is null or ${column} <= ?)`, fence: attempt.fence }
}

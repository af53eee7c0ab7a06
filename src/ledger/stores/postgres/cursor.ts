import { OnceError } from '../../core/errors.ts'
import type { Fence } from '../../core/identity.ts'

/** A cursor is a fence that we gave out; anything else never came from here. */
export function fenceOf(cursor: string): Fence {
  const fence = /^\d{1,16}$/.test(cursor) ? Number(cursor) : Number.NaN
  if (Number.isSafeInteger(fence)) return fence
  throw new OnceError('bad_option', 'The `cursor` is not one of this store.')
}

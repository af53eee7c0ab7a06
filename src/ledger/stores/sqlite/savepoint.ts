import type { Connection } from './connection.ts'

/** Undoes the work when it throws an error that `isOwn`; any other is one of the whole transaction, and thrown. */
export function inSavepoint<T>(
  { statements }: Connection,
  isOwn: (error: unknown) => boolean,
  work: () => T,
): { readonly value: T } | { readonly error: unknown } {
  // Savepoints of one name nest.
  statements.prepared('SAVEPOINT part').run()
  try {
    const value = work()
    statements.prepared('RELEASE part').run()
    return { value }
  } catch (error) {
    if (!isOwn(error)) throw error
    statements.prepared('ROLLBACK TO part').run()
    statements.prepared('RELEASE part').run()
    return { error }
  }
}

/** ReadyForQuery, the last message of every answer: its type, its length, and then one byte of transaction state. */
const READY_FOR_QUERY = Buffer.from('Z\0\0\0\x05', 'latin1')

/** Detects the end of PostgreSQL's answers, for `createProxy`. */
export function endsPostgresAnswer(tail: Buffer): boolean {
  return tail.subarray(-READY_FOR_QUERY.length - 1, -1).equals(READY_FOR_QUERY)
}

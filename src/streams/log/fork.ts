import type { ExchangedEntry, Fork } from '../ports.ts'
import type { LogPlace } from '../protocol/protocol.ts'

/** Null while it is the first of its identity, or says the same; also when the first is no longer remembered. */
export function forkOf(
  first: (LogPlace & { readonly digest: string }) | undefined,
  entry: ExchangedEntry,
): Fork | null {
  if (first === undefined || first.digest === entry.digest) return null
  const { client, epoch, cseq } = entry
  return { client, epoch, cseq, shown: { log: first.log, n: first.n }, hidden: entry }
}

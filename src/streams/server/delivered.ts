import type { StoredEntry } from '../ports.ts'
import type { Delivered } from '../protocol/protocol.ts'

const known = new WeakMap<StoredEntry, Delivered>()

/** What clients are sent of an entry: the same object for all of them, so that its text is made once. */
export function deliveredOf(entry: StoredEntry): Delivered {
  let delivered = known.get(entry)
  if (delivered === undefined) known.set(entry, (delivered = made(entry)))
  return delivered
}

function made({ at: _at, copy, digest: _digest, ...entry }: StoredEntry): Delivered {
  if (!copy) return { kind: 'message', ...entry }
  const { log, n, client, epoch, cseq, seen } = entry
  return { kind: 'copy', log, n, client, epoch, cseq, seen }
}

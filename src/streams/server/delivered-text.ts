import type { StoredEntry } from '../ports.ts'

const texts = new WeakMap<StoredEntry, string>()

/** What clients are sent of an entry: the same text for all of them, made once. */
export function deliveredText(entry: StoredEntry): string {
  let text = texts.get(entry)
  if (text === undefined) texts.set(entry, (text = JSON.stringify(delivered(entry))))
  return text
}

function delivered({ at: _at, copy, digest: _digest, ...entry }: StoredEntry): object {
  if (!copy) return { kind: 'message', ...entry }
  const { log, n, client, epoch, cseq, seen } = entry
  return { kind: 'copy', log, n, client, epoch, cseq, seen }
}

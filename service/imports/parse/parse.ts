import type { Entry } from './entry.ts'
import { Unreadable } from './entry.ts'
import { lineReader } from './lines.ts'
import { anyParser } from './sniff.ts'

/**
 * Reads a reference file, in pieces as small as those that it comes in: memory does not grow with the file. Broken records
 * are among the entries; a file of which nothing can be read throws `Unreadable`.
 */
export async function* parseReferences(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<readonly Entry[], void> {
  const lines = lineReader()
  let entries: Entry[] = []
  let references = 0
  let broken = 0
  let firstBroken = ''
  const parser = anyParser((entry) => {
    entries.push(entry)
    if (entry.kind === 'reference') references++
    else if (broken++ === 0) firstBroken = `line ${entry.line} ${entry.reason}`
  })

  function taken(): readonly Entry[] {
    const batch = entries
    entries = []
    return batch
  }

  for await (const chunk of bytes) {
    for (const line of lines.push(chunk)) parser.push(line)
    if (entries.length > 0) yield taken()
  }
  for (const line of lines.end()) parser.push(line)
  parser.end()
  if (entries.length > 0) yield taken()
  if (references === 0 && broken > 0) {
    throw new Unreadable(`holds no record that can be read; the first of ${broken}: ${firstBroken}`)
  }
}

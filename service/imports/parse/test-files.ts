import type { Entry } from './entry.ts'
import { parseReferences } from './parse.ts'

export function bytesOf(text: string, encoding: BufferEncoding = 'utf8'): Buffer {
  return Buffer.from(text, encoding)
}

async function* inChunks(...chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks
}

/** Everything that a file is read into, in one piece. */
export async function parsed(...chunks: readonly (Uint8Array | string)[]): Promise<readonly Entry[]> {
  const all: (readonly Entry[])[] = []
  const bytes = chunks.map((chunk) => (typeof chunk === 'string' ? bytesOf(chunk) : chunk))
  for await (const entries of parseReferences(inChunks(...bytes))) all.push(entries)
  return all.flat()
}

/** Titles of references and, for broken records, their lines and reasons. */
export function summary(entries: readonly Entry[]): readonly string[] {
  return entries.map((entry) => (entry.kind === 'reference' ? entry.reference.title : `${entry.line}: ${entry.reason}`))
}

export const ris = (number: number) =>
  [
    'TY  - JOUR',
    `TI  - The effect of retries, part ${number}`,
    'AU  - Müller, Ann',
    'AU  - Okafor, Ben',
    'PY  - 2019///',
    'JO  - Journal of Lost Acknowledgements',
    'AB  - Background: networks lose answers.',
    'Methods: we sent everything twice.',
    'ER  - ',
    '',
  ].join('\n')

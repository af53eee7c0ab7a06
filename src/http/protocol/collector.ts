import { createHash } from 'node:crypto'
import type { Captured } from './exchange.ts'

/** Keeps the bytes of an answer up to a cap; past it only counts and digests, so that memory stays flat. */
export interface Collector {
  /** The bytes are kept without a copy: the caller must not change them afterwards. */
  add(chunk: Uint8Array): void
  /** Past the cap: nothing of it will be kept. */
  readonly full: boolean
  body(): Captured['body']
}

export function createCollector(maxBytes: number): Collector {
  let chunks: Uint8Array[] = []
  let bytes = 0
  let digest: ReturnType<typeof createHash> | null = null

  return {
    add(chunk) {
      bytes += chunk.length
      if (digest === null && bytes > maxBytes) {
        digest = createHash('sha256')
        for (const kept of chunks) digest.update(kept)
        chunks = []
      }
      if (digest === null) chunks.push(chunk)
      else digest.update(chunk)
    },
    get full() {
      return digest !== null
    },
    body() {
      if (digest !== null) return { bytes, sha256: digest.copy().digest('hex') }
      const [only] = chunks
      return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, bytes)
    },
  }
}

/** The whole of an answer that is in memory anyway. */
export function collected(body: Uint8Array, maxBytes: number): Captured['body'] {
  if (body.length <= maxBytes) return body
  const collector = createCollector(maxBytes)
  collector.add(body)
  return collector.body()
}

import type { Readable } from 'node:stream'

/**
 * The bytes of a handler's stream, one chunk after the other. Unlike the iterators that streams have themselves, these can be
 * closed while a chunk is awaited: a stalled stream would not notice it otherwise.
 */

export function webChunks(body: ReadableStream<Uint8Array>): AsyncIterator<Uint8Array> {
  const reader = body.getReader()
  return {
    next: async () => {
      const { done, value } = await reader.read()
      return done ? { done, value: undefined } : { done, value }
    },
    return: async () => {
      await reader.cancel()
      return { done: true, value: undefined }
    },
  }
}

export function nodeChunks(stream: Readable): AsyncIterator<Uint8Array> {
  const chunks = bytesOf(stream)
  return {
    next: () => chunks.next(),
    return: async () => {
      stream.destroy()
      return { done: true, value: undefined }
    },
  }
}

async function* bytesOf(stream: Readable): AsyncGenerator<Uint8Array, undefined> {
  for await (const chunk of stream as AsyncIterable<string | Uint8Array>) {
    yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
  }
}

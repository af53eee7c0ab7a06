import type { ClientPosition, OpenClientStorage } from 'onceonly/stream'

/**
 * A storage that keeps only the last of the positions which come while one is being written. With a write to the disk for
 * each of a thousand messages the page would wait for the disk. What a crash loses is seen again: the page shows
 * everything again after a reload, and a message carries what its author had seen.
 */
export function createQuietStorage(inner: OpenClientStorage, failed: (error: unknown) => void): OpenClientStorage {
  let next: ClientPosition | null = null
  let writing: Promise<void> | null = null

  async function write(): Promise<void> {
    for (let position = next; position !== null; position = next) {
      next = null
      try {
        await inner.advance(position)
      } catch (error) {
        // The position that comes next says the same and more.
        failed(error)
      }
    }
    writing = null
  }

  return {
    ...inner,
    async advance(position) {
      next = position
      writing ??= write()
    },
    async stop() {
      await writing
      await inner.stop()
    },
  }
}

/**
 * Handles the events of one instance one after the other inside this process, so that they do not spend their tries on
 * each other. It only saves work: the version in the store decides, also between processes.
 */
export interface Partition {
  run<T>(id: string, work: () => Promise<T>): Promise<T>
}

export function createPartition(): Partition {
  const last = new Map<string, Promise<unknown>>()
  return {
    async run(id, work) {
      const mine = (last.get(id) ?? Promise.resolve()).then(work)
      const settled = mine.catch(() => undefined)
      last.set(id, settled)
      try {
        return await mine
      } finally {
        // No later event waits: an idle instance costs nothing.
        if (last.get(id) === settled) last.delete(id)
      }
    },
  }
}

import { createInterface } from 'node:readline'

/** The two words by which a side and its benchmark take turns, over the side's standard streams. */
export const READY = 'ready'
export const GO = 'go'

/** In a side: waits until it is its turn, and thereby says that the last one is over. */
export interface Turns {
  mine(): Promise<void>
  [Symbol.dispose](): void
}

export function openTurns(): Turns {
  const lines = createInterface({ input: process.stdin })
  const words = lines[Symbol.asyncIterator]()
  return {
    mine: async () => {
      process.stdout.write(`${READY}\n`)
      const { value, done } = await words.next()
      if (done === true || value !== GO) throw new Error('The benchmark went away.')
    },
    [Symbol.dispose]: () => lines.close(),
  }
}

/** Reads of a feed, one at a time. What was read for an earlier start of the feed is not sent. */
export interface Reading {
  /** It was started, and no read is under way. */
  readonly isReady: boolean
  start(): void
  stop(): void
  /** Reads, hands over what it found, and then pumps the feed, whose later start may have waited for the end of this read. */
  read<T>(load: () => Promise<T>, take: (found: T) => void): Promise<void>
}

export function createReading(pump: () => void, failed: (error: unknown) => void): Reading {
  let started = false
  let underWay = false
  /** Counts starts and stops. */
  let life = 0
  return {
    get isReady() {
      return started && !underWay
    },
    start() {
      life += 1
      started = true
    },
    stop() {
      life += 1
      started = false
    },
    async read(load, take) {
      const mine = life
      underWay = true
      try {
        const found = await load()
        if (mine === life) take(found)
      } catch (error) {
        if (mine === life) failed(error)
      } finally {
        underWay = false
      }
      pump()
    },
  }
}

/** At most so many at a time; who comes first goes first. */
export interface Slots {
  take(): Promise<void>
  give(): void
}

export function createSlots(total: number): Slots {
  const waiting: (() => void)[] = []
  let free = total
  return {
    take() {
      if (free > 0) {
        free -= 1
        return Promise.resolve()
      }
      return new Promise((resolve) => void waiting.push(resolve))
    },
    give() {
      const next = waiting.shift()
      if (next === undefined) free += 1
      else next()
    },
  }
}

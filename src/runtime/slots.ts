/** At most so many at a time; who comes first goes first. */
export interface Slots {
  take(): Promise<void>
  give(): void
  /** Takes a slot for as long as the work lasts. */
  use<T>(work: () => Promise<T>): Promise<T>
}

export function createSlots(total: number): Slots {
  const waiting: (() => void)[] = []
  let free = total

  function take(): Promise<void> {
    if (free > 0) {
      free -= 1
      return Promise.resolve()
    }
    return new Promise((resolve) => void waiting.push(resolve))
  }

  function give(): void {
    const next = waiting.shift()
    if (next === undefined) free += 1
    else next()
  }

  return {
    take,
    give,
    async use(work) {
      await take()
      try {
        return await work()
      } finally {
        give()
      }
    },
  }
}

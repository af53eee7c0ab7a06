import { safeCount } from './count.ts'

/** Logical time: whatever caused something has a smaller number. The reverse does not hold. */
export class LamportClock {
  #time: number

  constructor(time = 0) {
    this.#time = safeCount('time', time)
  }

  get time(): number {
    return this.#time
  }

  /** Something happened here. */
  tick(): number {
    this.#time = safeCount('time', this.#time + 1)
    return this.#time
  }

  /** The time to send with a message: sending is something that happens. */
  send(): number {
    return this.tick()
  }

  /** A message came: the larger of both times, and one more. */
  receive(time: number): number {
    this.#time = safeCount('time', Math.max(this.#time, safeCount('time', time)) + 1)
    return this.#time
  }
}

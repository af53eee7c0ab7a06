import { safeCount } from './count.ts'

/** A set of numbers that is nearly full: everything below the floor, and ranges above it. */
export class Ranges {
  /** Everything below it is in the set. */
  #floor: number
  /** Above the floor, sorted, not touching each other: [from, to] with both ends in the set. */
  readonly #above: [number, number][] = []

  constructor(floor = 0) {
    this.#floor = safeCount('floor', floor)
  }

  get floor(): number {
    return this.#floor
  }

  get above(): readonly (readonly [number, number])[] {
    return this.#above.map(([from, to]) => [from, to])
  }

  get rangeCount(): number {
    return this.#above.length
  }

  has(number: number): boolean {
    if (number < this.#floor) return true
    const place = this.#placeOf(number)
    const range = this.#above[place]
    return range !== undefined && range[0] <= number
  }

  /** False when it was there. In order, which is nearly always, it costs a comparison. */
  add(number: number): boolean {
    safeCount('number', number)
    if (this.has(number)) return false
    const place = this.#placeOf(number)
    const before = this.#above[place - 1]
    const after = this.#above[place]
    const joinsBefore = before !== undefined && before[1] === number - 1
    const joinsAfter = after !== undefined && after[0] === number + 1
    if (joinsBefore && joinsAfter) {
      before[1] = after[1]
      this.#above.splice(place, 1)
    } else if (joinsBefore) before[1] = number
    else if (joinsAfter) after[0] = number
    else this.#above.splice(place, 0, [number, number])
    this.#sink()
    return true
  }

  /** Everything below is in the set from now on. */
  addBelow(floor: number): void {
    if (floor <= this.#floor) return
    this.#floor = safeCount('floor', floor)
    while ((this.#above[0]?.[1] ?? Number.POSITIVE_INFINITY) < this.#floor) this.#above.shift()
    this.#sink()
  }

  /** The first range that ends at or after the number. */
  #placeOf(number: number): number {
    let low = 0
    let high = this.#above.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#above[middle]?.[1] ?? 0) < number) low = middle + 1
      else high = middle
    }
    return low
  }

  #sink(): void {
    for (let first = this.#above[0]; first !== undefined && first[0] <= this.#floor; first = this.#above[0]) {
      this.#floor = Math.max(this.#floor, first[1] + 1)
      this.#above.shift()
    }
  }
}

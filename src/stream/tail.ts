/** The newest of something that is numbered without gaps, for those who keep up; whoever is further back reads the store. */
export class Tail<T> {
  readonly #most: number
  #items: T[] = []
  /** The number of the newest. */
  #head: number

  constructor(most: number, head: number) {
    this.#most = most
    this.#head = head
  }

  get head(): number {
    return this.#head
  }

  push(item: T): void {
    this.#items.push(item)
    this.#head += 1
    // Dropped by halves, so that pushing stays cheap.
    if (this.#items.length >= 2 * this.#most) this.#items = this.#items.slice(-this.#most)
  }

  /** Numbers may be passed over only when something was removed before anybody could read it. */
  restart(head: number): void {
    this.#items = []
    this.#head = head
  }

  /** What follows the number, oldest first; null when that reaches further back than this goes. */
  after(number: number, most: number): readonly T[] | null {
    const back = this.#head - number
    if (back > this.#items.length) return null
    const from = this.#items.length - Math.max(0, back)
    return this.#items.slice(from, from + most)
  }
}

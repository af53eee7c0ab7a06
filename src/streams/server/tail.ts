export interface TailBounds<T> {
  readonly most: number
  readonly mostBytes?: number
  sizeOf?(item: T): number
}

/** The newest items of a sequence without gaps, for readers that keep up; a reader further back uses the store. */
export class Tail<T> {
  readonly #most: number
  readonly #mostBytes: number
  readonly #sizeOf: (item: T) => number
  #items: T[] = []
  /** Of each item. */
  #sizes: number[] = []
  #bytes = 0
  /** The number of the newest. */
  #head: number

  constructor({ most, mostBytes = Number.POSITIVE_INFINITY, sizeOf = () => 0 }: TailBounds<T>, head: number) {
    this.#most = most
    this.#mostBytes = mostBytes
    this.#sizeOf = sizeOf
    this.#head = head
  }

  get head(): number {
    return this.#head
  }

  push(item: T): void {
    const size = this.#sizeOf(item)
    this.#items.push(item)
    this.#sizes.push(size)
    this.#bytes += size
    this.#head += 1
    // Dropped by halves, so that pushing stays cheap.
    if (this.#items.length >= 2 * this.#most || this.#bytes >= 2 * this.#mostBytes) this.#drop()
  }

  #drop(): void {
    let gone = Math.max(0, this.#items.length - this.#most)
    let bytes = this.#bytes
    for (const size of this.#sizes.slice(0, gone)) bytes -= size
    for (; bytes > this.#mostBytes; gone++) bytes -= this.#sizes[gone] ?? 0
    this.#items = this.#items.slice(gone)
    this.#sizes = this.#sizes.slice(gone)
    this.#bytes = bytes
  }

  /** Numbers may be skipped only when entries were removed before they were read. */
  restart(head: number): void {
    this.#items = []
    this.#sizes = []
    this.#bytes = 0
    this.#head = head
  }

  /** As many of the last as are here. */
  newest(most: number): readonly T[] {
    return this.#items.slice(-most)
  }

  /** What follows the number, oldest first; null when that reaches further back than this goes. */
  after(number: number, most: number): readonly T[] | null {
    const back = this.#head - number
    if (back > this.#items.length) return null
    const from = this.#items.length - Math.max(0, back)
    return this.#items.slice(from, from + most)
  }
}

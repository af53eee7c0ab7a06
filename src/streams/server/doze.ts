/** How long to wait before the next look: short while something happens, and longer with every look that finds nothing. */
export class Doze {
  readonly #awakeMs: number
  readonly #mostMs: number
  #waitMs: number

  constructor(awakeMs: number, mostMs: number) {
    this.#awakeMs = awakeMs
    this.#mostMs = Math.max(awakeMs, mostMs)
    this.#waitMs = awakeMs
  }

  get waitMs(): number {
    return this.#waitMs
  }

  /** Something has happened. True when a wait that has begun is too long now. */
  stir(): boolean {
    const dozed = this.#waitMs > this.#awakeMs
    this.#waitMs = this.#awakeMs
    return dozed
  }

  /** A look found nothing. */
  nothing(): void {
    this.#waitMs = Math.min(this.#mostMs, 2 * this.#waitMs)
  }
}

/** How often an effect may see one message; the receiver chooses it explicitly. */
export type DeliveryMode = 'at-most-once' | 'at-least-once' | 'effectively-once'

/** Where a receiver keeps how far it has come, and, for `effectively-once`, which keys it has settled. */
export interface DeliveryStorage<P = number> {
  /** Durable when it returns. */
  advance(position: P): Promise<void>
  /** Runs the effect and remembers the key in one transaction; false when the key was settled before. */
  settle(key: string, position: P, effect: () => Promise<void>): Promise<boolean>
}

/** One way of handing a message to its effect. The difference is what stands first: the position, or the effect. */
export class Delivery<P = number> {
  readonly mode: DeliveryMode
  readonly #storage: DeliveryStorage<P>

  constructor(mode: DeliveryMode, storage: DeliveryStorage<P>) {
    this.mode = mode
    this.#storage = storage
  }

  /** False when the effect was not run, because it had been before. */
  async deliver(key: string, position: P, effect: () => Promise<void>): Promise<boolean> {
    switch (this.mode) {
      case 'at-most-once':
        // A crash after this loses the message, and never repeats it.
        await this.#storage.advance(position)
        await effect()
        return true
      case 'at-least-once':
        // A crash before the position is kept repeats the message, and never loses it.
        await effect()
        await this.#storage.advance(position)
        return true
      case 'effectively-once':
        return this.#storage.settle(key, position, effect)
    }
  }
}

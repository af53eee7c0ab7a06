export interface Watch {
  /** Settles when changes made from now on will be noticed. It never rejects: a store that cannot notify is polled. */
  readonly ready: Promise<void>
  stop(): void
}

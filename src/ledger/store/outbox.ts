/** What an effect hands to the outbox: published after the commit, at least once, or never. */
export interface OutboxMessage {
  readonly topic: string
  /** Messages of one key keep their order. */
  readonly key?: string
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** The port that an outbox implements. The id derives from the command, so a retried command cannot add a second event. */
export interface OutboxPort<Tx> {
  add(tx: Tx, message: OutboxMessage & { readonly id: string }): Promise<void>
}

import type { Ledger, OutboxPort, SqlStore, SqlTx } from 'onceonly'
import type { Inbox, InboxEvent, InboxOptions, IncomingMessage } from 'onceonly/inbox'
import { createInbox } from 'onceonly/inbox'
import type { Bench } from '../../ledger/worlds.ts'
import { onSqlStores } from '../../ledger/worlds.ts'

/** An inbox on one store, with a business table beside it and all of its events. */
export interface Stage {
  readonly inbox: Inbox<SqlTx>
  readonly events: InboxEvent[]
  readonly ledger: Ledger<SqlTx>
  readonly store: SqlStore
  write(tx: SqlTx, row: string): Promise<void>
  written(): Promise<readonly string[]>
  advance(ms: number): Promise<void>
  /** The same consumer in another process: its own store, ledger and inbox on the same data. */
  second(options?: Options, outbox?: OutboxPort<never>): Promise<Inbox<SqlTx>>
  /** Another consumer beside it. */
  another(options: Options): Inbox<SqlTx>
}

export type Options = Partial<InboxOptions<SqlTx>>

export function onInbox(title: string, options: Options, body: (stage: Stage) => Promise<void>): void {
  onSqlStores(title, async ({ world, once, second }: Bench) => {
    const events: InboxEvent[] = []
    const inboxes: Inbox<SqlTx>[] = []
    const open = (ledger: Ledger<unknown>, own: Options) => {
      const inbox = createInbox({
        ledger: ledger as Ledger<SqlTx>,
        consumer: 'billing',
        background: false,
        on: (event) => void events.push(event),
        ...own,
      })
      inboxes.push(inbox)
      return inbox
    }
    try {
      await body({
        inbox: open(once, options),
        events,
        ledger: once as Ledger<SqlTx>,
        store: world.store as SqlStore,
        write: (tx, row) => world.write(tx, row),
        written: () => world.written(),
        advance: (ms) => world.advance(ms),
        async second(own = options, outbox) {
          const ledger = await second({ store: await world.another() })
          if (outbox !== undefined) ledger.setOutbox(outbox)
          return open(ledger, own)
        },
        another: (own) => open(once, { ...options, ...own }),
      })
    } finally {
      for (const inbox of inboxes) await inbox.stop()
    }
  })
}

export function messageOf(id: string, changes: Partial<IncomingMessage> = {}): IncomingMessage {
  return {
    id,
    topic: 'orders',
    key: null,
    sequence: null,
    body: JSON.stringify({ order: id }),
    headers: {},
    deliveries: 1,
    ...changes,
  }
}

export const eventsOf = <K extends InboxEvent['kind']>(events: readonly InboxEvent[], kind: K) =>
  events.filter((event): event is Extract<InboxEvent, { kind: K }> => event.kind === kind)

/** What an idle process did. */
export interface Counts {
  readonly cpuMs: number
  /** How often its event loop had something to do, or a timer. */
  readonly turns: number
  /** By their text. */
  readonly statements: Readonly<Record<string, number>>
}

interface Reason {
  readonly pattern: RegExp
  readonly what: string
  readonly why: string
}

/**
 * Every statement of an idle server, and why it is sent. The first pattern that fits counts. A statement without a reason
 * fails the lab: it is a new poll.
 */
const reasons: readonly Reason[] = [
  {
    pattern: /pg_current_snapshot/,
    what: 'has anything been committed?',
    why: 'once a second for all listeners together, so that none of them polls; and a sign of life',
  },
  {
    pattern: /^connect$/,
    what: 'new connections',
    why: 'the pool closes clients that were idle for long; each new one costs as much as many statements',
  },
  {
    pattern: /^PRAGMA data_version/,
    what: 'has another process committed?',
    why: 'after every write to the file, and every 5 s in case that the system announced none',
  },
  {
    pattern: /onceonly_outbox_relays/,
    what: "the relay's lease",
    why: 'every third of a lease of 15 s: another relay takes over within two leases',
  },
  {
    pattern: /onceonly_run_workers|from onceonly_runs where worker = /,
    what: "the run worker's lease, and runs of workers that are gone",
    why: 'every third of a lease of 30 s: another worker takes over within two leases',
  },
  {
    pattern: /^(?:BEGIN|COMMIT|SAVEPOINT|RELEASE|PRAGMA synchronous)/,
    what: 'the transactions of the others',
    why: 'sweeps write in transactions; renewals of leases do not wait for the disk, so that what waits sets it back',
  },
  {
    pattern: /boot_id AS bootId|^SELECT \(?(?:floor\(|onceonly_clock)\S.* AS now$/,
    what: "the store's clock",
    why: 'read by statements that compare with it',
  },
  {
    pattern: /AS due FROM onceonly_local_deliveries/i,
    what: 'when is a delivery due?',
    why: 'about every 30 s for each consumer, as a safety net: usually a wake or its own time leads to it',
  },
  {
    pattern: /AS found FROM onceonly_outbox_rows|FROM \(SELECT due\.\*/,
    what: 'does a message wait in the outbox?',
    why: 'about every 30 s for each lane of the relay, as a safety net',
  },
  {
    pattern: /as due from onceonly_(?:runs|saga_pending)/i,
    what: 'when is a run, or a timeout of a saga, due?',
    why: 'about every 30 s, as a safety net',
  },
  {
    pattern: /as found from messages/,
    what: 'has a message lost its request?',
    why: 'about every 30 s, as a safety net, and after every change of the store',
  },
  {
    pattern: /from import_uploads u join/,
    what: 'was a file stored and not announced?',
    why: 'about every 30 s, as a safety net, and after every change of the store',
  },
  {
    pattern: /WITH moment AS|SELECT moment\.now|AS place, .* FROM onceonly_unknown|JOIN onceonly_unknown|unknowns?\b/i,
    what: 'leases of records that ended, and unknown outcomes',
    why: 'every third of a lease of 30 s, because a process that dies says nothing',
  },
  {
    pattern: /AS looked|AS fence, fence AS floor|onceonly_tallies/,
    what: 'the sweep of records and counts',
    why: 'every minute while nothing ends and nothing is added',
  },
  {
    pattern: /onceonly_stream_(?:rooms|orders)/,
    what: 'the sweep of rooms, for each of five regions',
    why: 'every minute: ONCEONLY_SWEEP_EVERY_MS; a question, and an update only where a room is due',
  },
  {
    pattern: /^(?:delete|update|select) .*|^with .* delete /i,
    what: 'sweeps of the wings and systems',
    why: 'every minute',
  },
]

export interface Line {
  readonly what: string
  readonly why: string
  readonly count: number
}

/** The statements by their reason, most frequent first; those without one under their own text. */
export function linesOf(statements: Counts['statements']): {
  readonly lines: readonly Line[]
  readonly unknown: readonly string[]
} {
  const lines = new Map<string, { what: string; why: string; count: number }>()
  const unknown: string[] = []
  for (const [text, count] of Object.entries(statements)) {
    const reason = reasons.find(({ pattern }) => pattern.test(text))
    if (reason === undefined) unknown.push(text)
    const { what, why } = reason ?? { what: text.slice(0, 120), why: 'no reason is known' }
    const line = lines.get(what) ?? { what, why, count: 0 }
    line.count += count
    lines.set(what, line)
  }
  return { lines: [...lines.values()].toSorted((a, b) => b.count - a.count), unknown }
}

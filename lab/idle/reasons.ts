/** What an idle process did. */
export interface Counts {
  readonly cpuMs: number
  /** How often its event loop had something to do, or a timer. */
  readonly turns: number
  /** By their text. */
  readonly statements: Readonly<Record<string, number>>
  /** Timers that fired, and announcements of the file system, by the file and function that they belong to. */
  readonly wakes: Readonly<Record<string, number>>
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
    why: 'every 5 s for all listeners together, and every second after a commit, so that none of them polls; and a sign of life',
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
    pattern: /INTO onceonly_outbox_relays/,
    what: "the relay's lease",
    why: 'every third of a lease of 15 s: another relay takes over within two leases',
  },
  {
    pattern: /onceonly_run_workers/,
    what: "the run worker's lease, and runs of workers that are gone",
    why: 'every third of a lease of 30 s: another worker takes over within two leases',
  },
  {
    pattern: /^(?:BEGIN|COMMIT|PRAGMA synchronous|SELECT CASE WHEN current_setting\('onceonly\.transaction')/,
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
    pattern: /as timeout from clock$|as due from onceonly_saga_pending/i,
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
    pattern: /WITH moment AS|SELECT moment\.now|AS place, .* FROM onceonly_unknown|JOIN onceonly_unknown/i,
    what: 'leases of records that ended, and unknown outcomes',
    why: 'every third of a lease of 30 s, because a process that dies says nothing',
  },
  {
    pattern: /^SELECT line FROM onceonly_outbox_keys/,
    what: 'which counters of keys are forgotten?',
    why: 'every minute, a page of them: a counter is removed when its key was not used for long',
  },
  {
    pattern: /from onceonly_run_queues q where q\.paused = 0/,
    what: 'does a queue let a run in?',
    why: 'about every 30 s, as a safety net',
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
    pattern: /AS ended FROM \(SELECT min\(/,
    what: 'has the first row of a table ended?',
    why: 'every minute for each table of the wings: a sweep begins only where something is to be removed',
  },
  {
    pattern: /^select place from \(select 0 as place, .* as retained where at <=/,
    what: 'is anything of the systems past its retention?',
    why: 'every minute: ONCEONLY_SWEEP_EVERY_MS; one question for all tables of the systems',
  },
]

/** The same for what wakes it: timers, and announcements of the file system. */
const wakeReasons: readonly Reason[] = [
  {
    pattern: /^src\/ledger\/stores\/postgres\/looks\.ts/,
    what: 'the look at what was committed',
    why: 'every 5 s while the server is quiet',
  },
  {
    pattern: /^src\/ledger\/stores\/sqlite\/(?:file-watch|watch)\.ts/,
    what: 'the look at what other processes committed',
    why: 'an announcement for every write to the log, a look behind it, and one every 5 s',
  },
  {
    pattern: /^src\/events\/outbox\/relay\.ts live/,
    what: "the relay's lease",
    why: 'every third of a lease of 15 s',
  },
  {
    pattern: /^src\/events\/(?:outbox\/lane|brokers\/local\/subscription)\.ts work/,
    what: 'lanes of the relay and consumers look',
    why: 'about every 30 s each, as a safety net',
  },
  {
    pattern: /^src\/runs\/worker\.ts/,
    what: "the run worker's lease, upkeep and next due run",
    why: 'lease and upkeep every third of a lease of 30 s, the rest about every 30 s and every minute',
  },
  {
    pattern: /^src\/ledger\/ledger\.ts/,
    what: 'leases of records that ended, unknown outcomes, the sweep',
    why: 'every third of a lease of 30 s; the sweep every minute',
  },
  {
    pattern: /^src\/(?:events\/(?:inbox\/inbox|brokers\/local\/bus|outbox\/relay)|streams\/server\/room-sweep)\.ts/,
    what: 'sweeps of the wings',
    why: 'every minute for each inbox, the bus, the relay and each of five regions',
  },
  {
    pattern: /^src\/events\/saga\/assemble\.ts/,
    what: 'timeouts and sweep of sagas',
    why: 'about every 30 s as a safety net, the sweep every minute',
  },
  {
    pattern: /^service\/(?:messages\/worker|imports\/uploads\/announce|workspaces\/retention)/,
    what: 'safety nets and retention of the systems',
    why: 'about every 30 s, retention every minute',
  },
  {
    pattern: /^src\/admin\/console\/history\.ts/,
    what: 'the bucket of the history',
    why: 'a minute each, so that the charts of the console are full when they load',
  },
  {
    pattern: /^src\/ledger\/store\/(?:overdue|deadline)\.ts|^pg-pool/,
    what: 'deadlines of calls, and of idle connections',
    why: 'one timer looks after all calls of a time; connections close after two idle minutes',
  },
]

export interface Line {
  readonly what: string
  readonly why: string
  readonly count: number
}

export interface Lines {
  readonly lines: readonly Line[]
  /** What has no reason. */
  readonly unknown: readonly string[]
}

/** The statements by their reason, most frequent first; those without one under their own text. */
export function linesOf(statements: Counts['statements']): Lines {
  return by(reasons, statements)
}

export function wakeLinesOf(wakes: Counts['wakes']): Lines {
  return by(wakeReasons, wakes)
}

function by(known: readonly Reason[], counts: Readonly<Record<string, number>>): Lines {
  const lines = new Map<string, { what: string; why: string; count: number }>()
  const unknown: string[] = []
  for (const [text, count] of Object.entries(counts)) {
    const reason = known.find(({ pattern }) => pattern.test(text))
    if (reason === undefined) unknown.push(text)
    const { what, why } = reason ?? { what: text.slice(0, 200), why: 'NO REASON IS KNOWN' }
    const line = lines.get(what) ?? { what, why, count: 0 }
    line.count += count
    lines.set(what, line)
  }
  return { lines: [...lines.values()].toSorted((a, b) => b.count - a.count), unknown }
}

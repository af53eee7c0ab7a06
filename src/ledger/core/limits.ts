/**
 * Every bound and every default of the library, with its unit and its reason.
 * Units come last in the name. Code elsewhere holds no magic number.
 */

/** One second in milliseconds. */
export const SECOND = 1_000
/** One minute in milliseconds. */
export const MINUTE = 60 * SECOND
/** One hour in milliseconds. */
export const HOUR = 60 * MINUTE
/** One day in milliseconds. */
export const DAY = 24 * HOUR

/** A time that never comes, still a safe integer in every store. */
export const FOREVER = Number.MAX_SAFE_INTEGER

/** What an operation gets when it does not say otherwise. */
export const defaults = {
  /** Long enough for client retries, queue redeliveries and a weekend. */
  retainMs: 7 * DAY,
  /** No refusal after expiry: a key that has been forgotten is a new key. */
  refuseMs: 0,
  /** A person must have had a fair chance to resolve an unknown outcome before it is given up. */
  unknownMs: 30 * DAY,
  /** Longer than a garbage-collection pause or a slow fsync, short enough that a crash is noticed soon. */
  leaseMs: 30 * SECOND,
  /** No lease is renewed forever: past this the attempt counts as lost. */
  maxRunMs: 15 * MINUTE,
  /** How long a twin waits for the first attempt before it gets a retryable `in_progress`. */
  waitMs: 10 * SECOND,
  /** The largest encoded outcome: a 1 MiB HTTP body, base64-encoded, with its headers. */
  outcomeBytes: 1_536 * 1_024,
  /** The first retry may come at once; the second waits this long, then it doubles. */
  retryBaseMs: 1 * SECOND,
  /** A failing dependency is asked about once a minute at the slowest. */
  retryCapMs: 1 * MINUTE,
  /** A relay that is gone is replaced within this; one that was paused for longer has lost its partitions. */
  relayLeaseMs: 15 * SECOND,
  /**
   * Brokers confirm within milliseconds; a batch without an answer by then is published again. At most half a lease.
   */
  relayPublishMs: 5 * SECOND,
  /** With the back-off below, a quarter of an hour: a missing queue or binding is mended by then, or by a person. */
  relayAttempts: 20,
  /** The first retry of a refused message comes soon; a key that fails is tried every minute at the slowest. */
  relayBackoffBaseMs: 250,
  relayBackoffCapMs: 1 * MINUTE,
  /** How long an id that a caller gave is remembered, so that a retried command adds no second message. */
  outboxIdMs: 7 * DAY,
  /** A delivery of the local bus whose receiver says nothing for this long is handed over again. */
  localLeaseMs: 30 * SECOND,
  /** A receiver that threw gets the message again after this: soon, but not in a busy loop. */
  localRetryMs: 1 * SECOND,
  /** As long as an inbox remembers: a later delivery could not be recognised as a copy any more. */
  localKeepMs: 7 * DAY,
  /** Longer than brokers hand a message over again, a weekend and a holiday included. */
  inboxWindowMs: 7 * DAY,
  /** With the back-off below about eight minutes: enough for a deploy, or a short fault of something that it calls. */
  inboxFailures: 10,
  /** Processes end for other reasons too; a handful of times in a row under one message, they do not. */
  inboxUnfinished: 5,
  /** Shorter than the transaction, to distinguish a slow effect from a hanging database. */
  inboxEffectMs: 25 * SECOND,
  /** The first retry of a failed message comes soon, later ones ever more slowly. */
  inboxRetryBaseMs: 1 * SECOND,
  inboxRetryCapMs: 5 * MINUTE,
  /** Longer than a relay's lease and a broker's redelivery: a number that has not come by then is not on its way. */
  inboxHoleMs: 5 * MINUTE,
  /** Messages under way at once: enough to keep a database busy, few enough to leave connections to others. */
  inboxConcurrency: 8,
} as const

/** Fixed limits that no option can exceed. */
export const limits = {
  /** A key of 255 bytes with room to spare; bounds the row and the index of every store. */
  identityPartBytes: 512,
  /** Names appear in metrics and URLs. */
  operationNameBytes: 128,
  /** A pointer names a thing, it does not hold it. */
  pointerBytes: 1_024,
  /** Error texts are for people: the rest is cut. */
  failureMessageChars: 2_000,
  /** The data of a recorded failure; a larger one is left out. */
  failureDataBytes: 16_384,
  /** The store frees a lease only this long after its end, so that the holder's own deadline always comes first. */
  leaseGraceMs: 5 * SECOND,
  /** Below this a heartbeat could not be sent in time over a slow link. */
  leaseMinMs: 500,
  leaseMaxMs: 1 * HOUR,
  /** A century: longer times would leave the range in which milliseconds are exact. */
  longestMs: 36_500 * DAY,
  /** The heartbeat is sent after this share of a lease, so that two may be lost. */
  heartbeatShare: 1 / 3,
  /**
   * A record that an operator released or forgot keeps its fence this long, so that an attempt that still runs cannot
   * write.
   */
  vacantMs: 1 * DAY,
  /**
   * A claim that its holder gave back leaves a trace this long: longer than the network may hold back a copy of the claim,
   * and than an earlier attempt may run on and try to settle.
   */
  releasedMs: 30 * MINUTE,
  /** The most unusual things that ever happened to one record; older ones make room. */
  historyEntries: 32,
  /** Rows of one group commit: large enough to share an fsync, small enough for one short statement. */
  batchRows: 256,
  /** Bytes of one group commit, so that a few large outcomes do not make a huge statement. */
  batchBytes: 4 * 1_024 * 1_024,
  /** Requests that wait for a group commit; more means that the store cannot keep up, and callers must know. */
  batchQueueRows: 65_536,
  /** The longest wait for a twin: past it a connection is better given up, and timers stay within their range. */
  waitMaxMs: 1 * HOUR,
  /** Callers waiting for attempts of others, per ledger. */
  waiters: 10_000,
  /** The local cache of settled outcomes for hot keys. */
  replayCacheBytes: 16 * 1_024 * 1_024,
  /** An answer from the local cache is never older than this. */
  replayCacheMs: 1 * SECOND,
  /** A store call that takes longer has failed for its caller. */
  storeCallMs: 10 * SECOND,
  /** Background work that is not due looks this often all the same, about: a wake may be lost, and a clock may be set. */
  safetyPollMs: 30 * SECOND,
  /** Background work that is due and cannot be done, such as a run of an unknown definition, is looked at this often. */
  duePollMs: 1 * SECOND,
  /** A joiner without a wake reads again after this, doubling up to the cap. */
  joinPollBaseMs: 50,
  joinPollCapMs: 1 * SECOND,
  /** How long settling is retried when the store does not answer. */
  settleRetryMs: 5 * MINUTE,
  /** Rows looked at by one step of the sweep: a short statement, whatever the size of the table. */
  sweepRows: 1_000,
  /**
   * Characters of each text of a note: what an attempt reports to operators, enough for a name or an id of another
   * system.
   */
  noteChars: 300,
  /** Pause between two rounds of the sweep. */
  sweepEveryMs: 60 * SECOND,
  /**
   * The part of its time that a sweep works at most, while there is something to remove: what is left serves callers.
   */
  sweepShare: 0.25,
  /**
   * The ledger looks this often whether the oldest records have ended, because the table grows meanwhile: it is one step.
   * While none has ended it looks less often, down to `sweepEveryMs`.
   */
  ledgerSweepEveryMs: 10 * SECOND,
  /** Records that one step of it looks at, at most: a store takes fewer where a step would keep others waiting. */
  ledgerSweepRows: 4_000,
  /**
   * Steps in a row that removed nothing, after which it pauses: a table of long-lived records is not read all the time.
   */
  sweepIdleSteps: 5,
  /** Steps of one sweep round, so that a round ends. */
  sweepSteps: 100,
  /** Lapsed or unknown records handled by one round of the reconciler. */
  reconcileRows: 200,
  /** Waiting time between two probes of one unknown outcome: doubling from the base to the cap. */
  probeBaseMs: 5 * SECOND,
  probeCapMs: 10 * MINUTE,
  /** One round of asking about unknown outcomes; the next one continues where it stopped. */
  probeRoundMs: 1 * MINUTE,
  /** A probe that takes longer has answered nothing. */
  probeLeaseMs: 30 * SECOND,
  /** Counts of replays and conflicts are written behind, at most this often. */
  tallyEveryMs: 5 * SECOND,
  /** Distinct rows held for the next write-behind; past it counts are dropped, never callers. */
  tallyRows: 4_096,
  /** Width of one bucket of the caller statistics. */
  tallyBucketMs: 5 * MINUTE,
  /** The caller statistics serve questions about the last hours only. */
  tallyKeepMs: 1 * DAY,
  /** An operator's page of records, and what one query may look at to fill it. */
  pageRows: 500,
  scanRows: 20_000,
  /** Tries of a transaction that was rolled back by a deadlock, a serialisation failure or a lock time-out. */
  transactionTries: 5,
  /** How long a transaction waits for a twin that holds its row. */
  transactionLockMs: 5 * SECOND,
  /** How long a call beside an open transaction, which may hold the only connection, waits for another one. */
  besideTransactionMs: 1 * SECOND,
  /** How long a transaction may hold SQLite's only writer. */
  writerHoldMs: 5 * SECOND,
  /** A batch never waits longer than this for a row that another open transaction holds. */
  batchLockMs: 200,
  /** An event says what happened, it does not carry files; half of what NATS takes with its default settings. */
  outboxBodyBytes: 512 * 1_024,
  /** AMQP routing keys and NATS subjects, with room for a prefix. */
  outboxTopicBytes: 200,
  /** AMQP message ids are short strings. */
  outboxIdBytes: 255,
  /** All headers of one message, names and values. */
  outboxHeaderBytes: 8 * 1_024,
  /** Shares of the outbox that relays hold: enough for dozens of relays, few enough to look into all at once. */
  outboxPartitions: 64,
  /** Batches of one relay that are under way at once: one is read or marked while others are being confirmed. */
  relayLanes: 4,
  /** Rows that one lane publishes at once, and their bytes, which the last row of each partition may exceed. */
  relayBatchRows: 512,
  relayBatchBytes: 4 * 1_024 * 1_024,
  /** Rows that one look brings of a partition, unless that was full at the last look. */
  relayShareRows: 32,
  /** Calls of a publisher that may stay unanswered in one lane: each holds a batch in memory. */
  relayUnanswered: 4,
  /**
   * A relay with nothing to do looks again after this, doubling up to the cap, and beyond it only when no message waits at
   * all.
   */
  relayPollBaseMs: 250,
  relayPollCapMs: 2 * SECOND,
  /**
   * A relay that turns notifications on again has missed transactions that were just adding: at first it polls this
   * often.
   */
  relayDozeBaseMs: 50,
  /**
   * Then after one of so many parts of the time since: a transaction that was open for a second is found an eighth
   * later.
   */
  relayDozeParts: 8,
  /** A broker that is down is retried after this, doubling up to the cap. */
  relayAwayBaseMs: 100,
  relayAwayCapMs: 5 * SECOND,
  /** Rounds without a share of its own come this often, until the relay has one. */
  relayHungryMs: 500,
  /** Looks in a row that found something before a relay asks not to be notified: under load it looks anyway. */
  relayBusyLooks: 4,
  /** Counting stops here: past it, "very many" is what an operator needs to know. */
  countRows: 100_000,
  /** Deliveries that one statement of the local bus takes; more are taken by the next one. */
  localClaimRows: 256,
  /** Distinct keys watched by the per-key attempt limit. */
  attemptLimitKeys: 10_000,
  /** Names of runs, steps and branches: they stand in paths, keys and consoles. */
  runNameChars: 128,
  /** Branches of one fork: each is a line of execution in memory. */
  runBranches: 1_000,
  /** Encoded inputs, plans and results of steps: a journal is read whole. */
  runResultChars: 1_024 * 1_024,
  /** Lines of one journal: it is read whole, and followed from its beginning, whenever a worker takes the run. */
  runEntries: 50_000,
  /**
   * Plans and results of one journal together, and payloads of one run's signals: they stand in the memory of a worker.
   */
  runJournalChars: 64 * 1_024 * 1_024,
  /** Signals of one run, those included that it has taken: they are read with its journal. */
  runSignals: 10_000,
  /** Failures that a step remembers; older ones make room. */
  runFailures: 20,
  /** Attempts of a step that does not say otherwise. */
  runStepAttempts: 5,
  /** How long one attempt of a step may take, if it does not say otherwise. */
  runStepMs: 60 * SECOND,
  /** Between two attempts of a step: doubling from the base to the cap. */
  runRetryBaseMs: 1 * SECOND,
  runRetryCapMs: 5 * MINUTE,
  /** Runs in the memory of one process at once. */
  runConcurrency: 100,
  /** Runs taken by one statement, so that several processes share a crowd. */
  runTake: 50,
  /** Workers that may end in a row while they drive a run that records nothing: then it waits for a person. */
  runTakeovers: 3,
  /** A run on its last takeover waits so long for an idle process, and then has that process for itself so long. */
  runAloneMs: 30 * SECOND,
  /** How often a caller that waits for the end of a run in another process looks for it. */
  runPollMs: 1 * SECOND,
  /** How long `stop` waits for steps under way before it hands their runs over. */
  runDrainMs: 30 * SECOND,
  /** A version of a definition is a small number in every store. */
  runVersions: 1_000_000,
  /** How long a replay that continues a run waits for it to end, or to wait. */
  runReplayMs: 30 * SECOND,
  /** How long a replay may evaluate one run: everything is recorded, so a longer evaluation is stuck. */
  runEvaluateMs: 30 * SECOND,
  /** Journals of ended runs are kept this long: long enough to replay a quarter's runs before a deploy. */
  runKeepMs: 90 * DAY,
  /** Steps whose follower a process remembers: names of steps may be made up, and each is small. */
  runFollowers: 10_000,
  /** Attributes of one run: each is a row by which runs are found. */
  runAttributes: 32,
  /** An attribute is a word to look for, not a text to read. */
  runAttributeChars: 256,
  /** A stream of events without any sends a sign of life this often: proxies close silent connections after a minute. */
  runEventPulseMs: 15 * SECOND,
  /** Ended runs removed by one step of the sweep, so that a step is a short transaction. */
  runSweepRuns: 200,
  /** The longest timeout of a run: beyond it, a run is not limited but forgotten. */
  runTimeoutMs: 10 * 365 * DAY,
  /** The share of a journal's room from which on it is reported: early enough to continue the run in another one. */
  runFullShare: 0.8,
  /** Queues of one process: each look at them is one statement over all. */
  runQueues: 1_000,
  /** Runs of one queue, or of one key of it, at once: they are counted whenever one is let in. */
  runQueuePlaces: 10_000,
  /** Runs that a queue lets in per span: those of the last span are counted whenever one is let in. */
  runQueueRate: 10_000,
  /** The span of a rate: rows of ended runs are kept longer. */
  runQueueSpanMs: 1 * DAY,
  /** Priorities go from minus this to this: small numbers that people can keep apart. */
  runQueuePriority: 1_000,
  /** The longest delay of a run in a queue; what is later belongs into a schedule. */
  runQueueDelayMs: 366 * DAY,
  /** Rows that one statement of a queue moves, so that its lock is held briefly. */
  runQueueRows: 1_000,
  /** Times that one transaction of a queue looks again, past runs whose keys have no place. */
  runQueueRounds: 10,
  /** A place of a key that came free when its worker died is found this late. */
  runQueueSeekMs: 10 * SECOND,
  /** The longest timer that is kept in memory: longer waits are looked at again after it. */
  runTimerMs: 1 * HOUR,
  /** A consumer's name is part of an operation's name, and leaves room for what stands around it. */
  consumerNameBytes: 100,
  /** A message that waits for an earlier one of its key is asked again this soon, and at least this often. */
  inboxWaitBaseMs: 100,
  inboxWaitCapMs: 5 * SECOND,
  /** At least so often the order is checked, on every broker: a longer silence means that nothing was consumed. */
  inboxLookMs: 20 * SECOND,
  /**
   * A consumer that begins with what comes now waits this long for lower numbers: copies overtake each other by less.
   */
  inboxBeginMs: 3 * SECOND,
  /** A message delayed by an outage comes again after this. */
  inboxOutageBaseMs: 1 * SECOND,
  inboxOutageCapMs: 1 * MINUTE,
  /** Deliveries whose end could not be written, remembered per process until it can. */
  inboxOwedMessages: 10_000,
  /** Other bodies under one message id that are kept: enough to see what a sender does wrong. All are reported. */
  inboxConflictLetters: 10,
  /** Longer than a delivery waits for its copies and then runs: one that is silent for longer died with its process. */
  inboxVanishedMs: 1 * MINUTE,
} as const

/** Defaults of the client. */
export const clientDefaults = {
  /** With the pauses below about half a minute: longer than a deploy or a failover. */
  attempts: 8,
  /** Longer than a server waits for a twin of the request. */
  attemptMs: 30 * SECOND,
  /** Past it a person has given up, too. */
  withinMs: 2 * MINUTE,
  backoffBaseMs: 250,
  backoffCapMs: 10 * SECOND,
  /** Longer than servers replay by default. */
  keepKeysMs: 30 * DAY,
} as const

/** What the adapters of message brokers take and hold. */
export const brokerLimits = {
  /** Namespaces become the names of exchanges, streams and queues, which have about this much room to spare. */
  namespaceBytes: 64,
  /** An AMQP short string: ids, topics and the names of queues end here on RabbitMQ, and so everywhere. */
  nameBytes: 255,
  /** The headers of a message travel in one frame of 128 KiB on RabbitMQ, and count as payload on NATS. */
  headerBytes: 64 * 1_024,
  /** The default maximum of RabbitMQ 4. NATS announces its own, usually 1 MiB. */
  bodyBytes: 16 * 1_024 * 1_024,
  /** No server is set to refuse a message of this size; a larger one goes out alone among those of its key. */
  smallCharacters: 16 * 1_024,
  /** Messages without a confirmation: a broker that hangs must not fill our memory. */
  publishWindow: 10_000,
  /** Topics whose subject and stream a publisher remembers: all of a large application. */
  knownTopics: 1_000,
  /** Messages that one subscription may have under way: AMQP's own bound of a prefetch. */
  concurrency: 65_535,
  /** The wait before a message comes again whose receiver threw. */
  thrownDelayMs: 1 * SECOND,
  /** How long a slot is held back when a broker cannot take a message for later: failing must not become a hot loop. */
  requeueHoldMs: 1 * SECOND,
  /** How long an orderly end may take; the broker takes back what we hold when the connection closes in any case. */
  stopMs: 10 * SECOND,
  /** How long putting a message off may take before it is simply handed back. */
  putOffMs: 5 * SECOND,
  /** `later` beyond this comes earlier than asked; RabbitMQ's own bound is 49 days. */
  laterMaxMs: 30 * DAY,
  /** For how long a broker is expected to hand over a message again: the inbox's own window. */
  redeliveryHorizonMs: 7 * DAY,
  /** How long `subscribe` waits for a broker that is down. */
  subscribeMs: 30 * SECOND,
  /**
   * Past this JetStream takes a copy for a new message; relays repeat within minutes, and the inbox remembers for days.
   */
  duplicateWindowMs: 10 * MINUTE,
  /**
   * A consumer of JetStream that says nothing for so long gets the message again; it is renewed at every third of it.
   */
  ackWaitMs: 30 * SECOND,
  /**
   * Handed over and not yet acknowledged, those put off until later included: past it JetStream pauses the consumer.
   */
  ackPending: 100_000,
  /** One request for messages; an idle consumer asks this often. */
  fetchMs: 15 * SECOND,
  /** A consumer whose broker fails asks again after this, doubling up to the cap. */
  reconnectBaseMs: 100,
  reconnectCapMs: 5 * SECOND,
} as const

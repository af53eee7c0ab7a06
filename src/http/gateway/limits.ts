import { MINUTE, SECOND } from '../../ledger/core/limits.ts'

/** Bounds and defaults of the gateway, each with its unit and its reason. */

const MIB = 1_024 * 1_024

export const gatewayDefaults = {
  /** The largest body of a protected request: it has to be read whole before anything of it may be forwarded. */
  maxBodyBytes: 32 * MIB,
  /** A connection that takes longer to be made is as good as refused, and nothing was sent on it. */
  connectMs: 5 * SECOND,
  /** How long the upstream may think before the first byte of its answer. */
  answerMs: 1 * MINUTE,
  /** How long a protected request's body may take to arrive: a slower client would hold a slot for nothing. */
  bodyMs: 30 * SECOND,
  /**
   * How long an answer that has begun may pause, and the body of a request that is only passed on; not passed events.
   */
  idleMs: 2 * MINUTE,
  /** How long `stop` waits for requests under way. */
  drainMs: 30 * SECOND,
  /** How long the store may take to decide about the content of a request without a key, before it counts as down. */
  decideMs: 250,
} as const

export const gatewayLimits = {
  /** Up to here a body stays in memory, past it in a temporary file. */
  memoryBodyBytes: 1 * MIB,
  /** The largest body that a configuration may ask for: its fingerprint is computed from all of it, in memory. */
  maxBodyBytes: 256 * MIB,
  /** All bodies in temporary files together: where those lie is often memory, and rarely large. */
  spooledBytes: 1_024 * MIB,
  /** Answers whose declared length is within this are recorded whole and then sent in one piece. */
  wholeAnswerBytes: 64 * 1_024,
  /** Of them, for one client address alone. */
  spoolShare: 0.5,
  /**
   * From here on the fingerprint of a body is computed in a thread of its own: a hostile one takes 0.1 ms for each KiB.
   */
  threadBytes: 128 * 1_024,
  /** Bodies in files that wait to be looked at, which happens one by one, and how long. */
  largeQueue: 1_024,
  largeQueueMs: 30 * SECOND,
  /** Requests whose bodies are on their way at once. */
  receiving: 4_096,
  /** WebSockets and streams of events at once; they have connections of their own to the upstream. */
  streams: 8_192,
  /** So much of a body, or all of it, has come before an unprotected request takes a connection of the upstream. */
  gatheredBytes: 64 * 1_024,
  /** A body without a length may be one half of a conversation: it is sent on after this long, however little it is. */
  gatherMs: 1 * SECOND,
  /** A body that is only passed on may take this long, whatever its speed. */
  bodyGraceMs: 20 * SECOND,
  /** After that it is a client on the slowest line in use, or one that only keeps a connection busy. */
  bodyBytesPerSecond: 512,
  /** Requests at one upstream at once, each with a connection of its own. */
  upstreamSockets: 1_024,
  /** Requests that wait for one of them, and how long; they have sent nothing. Longer than that, clients try again. */
  upstreamQueue: 1_024,
  upstreamQueueMs: 5 * SECOND,
  /** An idle connection may be closed by the upstream at any moment: the shortest time-outs in use are two seconds. */
  freshMs: 1 * SECOND,
  /** Idle connections for requests that may be sent again are kept as long as most servers keep theirs. */
  keepAliveMs: 4 * SECOND,
  /** A head that takes longer is an attack, or a client that is gone. */
  headMs: 15 * SECOND,
  /** Once the listener is closed, a client whose request was on its way has this long to see it answered. */
  lingerMs: 1 * SECOND,
  /** Asked by load balancers every few seconds: a store that takes longer is not ready. */
  readyMs: 2 * SECOND,
  /** Tries of one request at an upstream that honours keys, before its client gets a retryable error. */
  redrives: 2,
  /** The upstream that broke a connection gets a moment before it is asked again. */
  redriveMs: 100,
  /** Rules are looked at one by one. */
  routes: 1_000,
  /** A forward-auth answer is a word; a longer one is not read. */
  authorizeMs: 5 * SECOND,
  /**
   * A request whose token is to be verified waits this long for keys that are not known yet; then it counts as
   * unverified.
   */
  jwksMs: 2 * SECOND,
  /** Key sets of large issuers, with their certificates, have some ten kilobytes. */
  jwksBytes: 256 * 1_024,
  /** Issuers have two or three keys at a time. */
  jwksKeys: 100,
  /** Older keys are used while they are loaded again. */
  jwksFreshMs: 10 * MINUTE,
  /** Keys that could not be loaded again for this long may have been withdrawn, and are not used any more. */
  jwksMostMs: 60 * MINUTE,
  /** Between two loads, whatever they gave: any client can invent a key id. */
  jwksPauseMs: 5 * SECOND,
  /** How far an issuer's clock may be ahead of ours. A token that has ended by ours has ended. */
  clockSkewMs: 1 * MINUTE,
  /** Shorter keys are broken by now, longer ones take too long: RFC 7518 asks for 2048 at least. */
  leastRsaBits: 2_048,
  mostRsaBits: 8_192,
} as const

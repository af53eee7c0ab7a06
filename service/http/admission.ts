import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { addressKey, createByteBudget, createShares, frontLimits, retryAfterMs } from 'onceonly/http/limits'
import type { Around, LoadShape } from 'onceonly/telemetry'
import { bearerOf, keyIdOf } from '../workspaces/keys.ts'
import { sendProblem } from './problem.ts'

/**
 * How many commands are worked on at once, and how many bytes of bodies are held. A command that is taken on and then waits
 * longer than its lease, its locks or its client was work for nothing, and made the others wait as well: past some load such
 * a server answers no client. So it takes on what the store keeps up with, shared between workspaces, and asks all others
 * at once to come again.
 */
export interface Admission {
  /** Around every claim: the duration of a claim shows whether the store keeps up. */
  readonly around: Around
  /** Whether this workspace may begin one more; `enter` also takes the place. The caller of `enter` calls `leave` when the command has ended. */
  mayEnter(key: string): boolean
  enter(key: string): boolean
  leave(key: string): void
  /** Takes in a body of so many bytes; null where there is no room for it. */
  receive(key: string, bytes: number): Receipt | null
  readonly load: LoadShape & { readonly most: number }
}

/** A body on its way. More calls than one change nothing. */
export interface Receipt {
  /** It has come, or will not: others may send theirs. */
  arrived(): void
  /** Its bytes are not needed any more. */
  release(): void
}

/** A command waits, and costs memory, for as long as its effect takes: this many may wait for slow providers. */
const COMMANDS_MOST = 1_000
/** Requests whose bodies are on their way at once: they wait for their clients, not for the store. */
const RECEIVING_MOST = 1_000
/** However slow the store is: fewer would leave it idle between two answers. */
const COMMANDS_LEAST = 64
/** A claim takes milliseconds. One that took this long stood in a line that is too long. */
const SLOW_CLAIM_MS = 1_000
/** The line needs a moment to become shorter, before it is judged again. */
const JUDGED_EVERY_MS = 500
const KEPT_WHEN_SLOW = 0.7

export function createAdmission(now: () => number = () => performance.now()): Admission {
  let most = COMMANDS_MOST
  const { placeShare: share } = frontLimits
  const commands = createShares({ most: () => most, ceiling: COMMANDS_MOST, share })
  const receiving = createShares({ most: () => RECEIVING_MOST, share })
  const bodies = createByteBudget({ totalBytes: frontLimits.bodyBytes, share: frontLimits.bodyShare })
  let judgedMs = Number.NEGATIVE_INFINITY

  function learn(tookMs: number): void {
    if (tookMs < SLOW_CLAIM_MS) {
      most = Math.min(COMMANDS_MOST, most + 1)
    } else if (now() - judgedMs >= JUDGED_EVERY_MS) {
      judgedMs = now()
      most = Math.max(COMMANDS_LEAST, Math.floor(Math.min(most, commands.underWay) * KEPT_WHEN_SLOW))
    }
  }

  return {
    async around(part, _command, work) {
      if (part !== 'claim') return work()
      const startedMs = now()
      try {
        return await work()
      } finally {
        learn(now() - startedMs)
      }
    },
    mayEnter: (key) => commands.mayEnter(key),
    enter: (key) => commands.enter(key),
    leave: (key) => commands.leave(key),
    receive(key, bytes) {
      const hold = bodies.hold(key)
      if (!receiving.enter(key)) return null
      let onItsWay = true
      const arrived = () => {
        if (onItsWay) receiving.leave(key)
        onItsWay = false
      }
      if (hold.cover(bytes)) return { arrived, release: () => hold.release() }
      arrived()
      return null
    },
    get load() {
      const underWay = receiving.underWay + commands.underWay
      return { underWay, most, waiting: commands.waiting, bodyBytes: bodies.heldBytes }
    },
  }
}

/** Longer than effects take. */
const FORSAKEN_MS = 60_000

/** What was taken for one request. */
interface Taken {
  readonly key: string
  readonly receipt: Receipt | null
  /** It has a place among the commands. */
  entered: boolean
}

/**
 * When the caller is known, and before anything of the body is read: a refused command has changed nothing, holds no lock, and
 * takes no memory. The place itself is taken when the body is there, so that slow clients hold none.
 */
export function admitCommands(
  server: FastifyInstance,
  admission: Pick<Admission, 'mayEnter' | 'enter' | 'leave' | 'receive'>,
): void {
  const taken = new WeakMap<FastifyRequest, Taken>()
  /** The workspace of a key, as last authenticated: a flood is refused without asking the store again. */
  const seen = new Map<string, string>()

  server.addHook('onRequest', (request, reply, done) => {
    const share = isCommand(request) ? seen.get(keyOf(request) ?? '') : undefined
    if (share === undefined || admission.mayEnter(share)) return done()
    refuse(request, reply, COMMANDS_FULL)
  })

  server.addHook('preParsing', (request, reply, payload, done) => {
    const bytes = bodyBytesOf(request)
    const command = isCommand(request)
    if (!command && bytes === 0) return done(null, payload)
    const key = shareOf(request)
    if (command && request.caller) remember(keyOf(request), key)
    if (command && !admission.mayEnter(key)) return void refuse(request, reply, COMMANDS_FULL)
    const receipt = bytes === 0 ? null : admission.receive(key, bytes)
    if (bytes > 0 && receipt === null) return void refuse(request, reply, BODIES_FULL)
    taken.set(request, { key, receipt, entered: false })
    if (receipt !== null) request.raw.once('end', receipt.arrived)
    // An effect that continues without its client is still work, although its client gets no answer.
    reply.raw.once('close', () => {
      if (!request.raw.complete) leave(request)
      else if (taken.has(request)) setTimeout(leave, FORSAKEN_MS, request).unref()
    })
    done(null, payload)
  })

  server.addHook('preValidation', (request, reply, done) => {
    const found = taken.get(request)
    if (found === undefined || !isCommand(request)) return done()
    if (!admission.enter(found.key)) return void refuse(request, reply, COMMANDS_FULL)
    found.entered = true
    done()
  })

  server.addHook('onSend', (request, _reply, payload, done) => {
    leave(request)
    done(null, payload)
  })

  function remember(apiKey: string | null, share: string): void {
    if (apiKey === null) return
    if (seen.size >= SEEN_MOST) seen.clear()
    seen.set(apiKey, share)
  }

  function leave(request: FastifyRequest): void {
    const found = taken.get(request)
    if (found === undefined) return
    taken.delete(request)
    found.receipt?.arrived()
    found.receipt?.release()
    if (found.entered) admission.leave(found.key)
  }
}

/** More keys than are in use at once on one server; they are forgotten together. */
const SEEN_MOST = 10_000

/** By its name, which does not give it away. */
function keyOf({ headers }: FastifyRequest): string | null {
  const key = bearerOf(headers.authorization)
  return key === null ? null : keyIdOf(key)
}

/**
 * Workspaces share the server; callers that are not authenticated share it by address. Operators have a share beside it: some
 * of them are known only when their bodies are read, and no flood of others is to keep them out.
 */
function shareOf(request: FastifyRequest): string {
  const { caller, raw } = request
  if (caller) return `workspace ${caller.workspaceId}`
  return `${isOperators(request) ? 'operators at' : 'address'} ${addressKey(raw.socket.remoteAddress ?? '')}`
}

/** What the body may take: as much as it says, or as much as it may have where it says nothing. */
function bodyBytesOf({ headers, routeOptions: { bodyLimit } }: FastifyRequest): number {
  if (headers['transfer-encoding'] !== undefined) return bodyLimit
  return Math.min(Number(headers['content-length'] ?? 0) || 0, bodyLimit)
}

function isCommand(request: FastifyRequest): boolean {
  const { declaration } = request.routeOptions.config
  if (declaration === undefined || declaration === 'page') return false
  return declaration.repeat !== undefined && !isOperators(request)
}

/** Operators come in at any time, above all when it is crowded. */
function isOperators({ routeOptions }: FastifyRequest): boolean {
  const { declaration } = routeOptions.config
  return declaration !== undefined && declaration !== 'page' && declaration.access === 'operator'
}

const COMMANDS_FULL =
  'More commands are under way than the server keeps up with. Nothing was begun: send the same request again.'
const BODIES_FULL =
  'More bytes of requests are on their way than the server has room for. Nothing was begun: send the same request again.'

function refuse(request: FastifyRequest, reply: FastifyReply, detail: string): FastifyReply {
  // Nothing else can come over a connection whose body is not read.
  if (!request.raw.complete && bodyBytesOf(request) > 0) reply.raw.shouldKeepAlive = false
  return sendProblem(reply, { name: 'overloaded', detail, retryAfterMs: retryAfterMs() })
}

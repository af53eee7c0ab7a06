import { randomInt } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Around } from 'onceonly/telemetry'
import { sendProblem } from './problem.ts'

/**
 * How many commands are worked on at once. A command that is taken on and then waits longer than its lease, its locks or
 * its client was work for nothing, and made the others wait as well: past some load such a server answers nobody. So it
 * takes on what the store keeps up with, and tells everybody else at once to come again.
 */
export interface Admission {
  /** Around every claim: how long the store takes for one tells whether it keeps up. */
  readonly around: Around
  /** How many may be under way now. */
  readonly most: number
  /** Whether one more may begin. Whoever may says so when it has ended. */
  enter(): boolean
  leave(): void
}

/** A command waits, and costs memory, for as long as its effect takes: this many may wait for slow providers. */
const COMMANDS_MOST = 1_000
/** However slow the store is: fewer would leave it idle between two answers. */
const COMMANDS_LEAST = 64
/** A claim takes milliseconds. One that took this long stood in a line that is too long. */
const SLOW_CLAIM_MS = 1_000
/** The line needs a moment to become shorter, before it is judged again. */
const JUDGED_EVERY_MS = 500
const KEPT_WHEN_SLOW = 0.7

export function createAdmission(now: () => number = () => performance.now()): Admission {
  let most = COMMANDS_MOST
  let underWay = 0
  let judgedMs = Number.NEGATIVE_INFINITY

  function learn(tookMs: number): void {
    if (tookMs < SLOW_CLAIM_MS) {
      most = Math.min(COMMANDS_MOST, most + 1)
    } else if (now() - judgedMs >= JUDGED_EVERY_MS) {
      judgedMs = now()
      most = Math.max(COMMANDS_LEAST, Math.floor(Math.min(most, underWay) * KEPT_WHEN_SLOW))
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
    get most() {
      return most
    },
    enter() {
      if (underWay >= most) return false
      underWay += 1
      return true
    },
    leave() {
      underWay -= 1
    },
  }
}

/** Everybody who was refused at once must not come back at once. */
const COME_AGAIN_LEAST_MS = 1_000
const COME_AGAIN_MOST_MS = 5_000
/** Longer than effects take. */
const FORSAKEN_MS = 60_000

/** Before anything of a command is begun, so that a refused one has changed nothing and holds no lock. */
export function admitCommands(server: FastifyInstance, admission: Admission): void {
  const entered = new WeakSet<FastifyRequest>()

  server.addHook('preValidation', (request, reply, done) => {
    if (!isCommand(request)) return done()
    if (!admission.enter()) return void refuse(reply)
    entered.add(request)
    // An effect that goes on without its client is still work; but nobody answers a client for certain who is gone.
    reply.raw.once('close', () => {
      if (entered.has(request)) setTimeout(leave, FORSAKEN_MS, request).unref()
    })
    done()
  })

  server.addHook('onSend', (request, _reply, payload, done) => {
    leave(request)
    done(null, payload)
  })

  function leave(request: FastifyRequest): void {
    if (entered.delete(request)) admission.leave()
  }
}

/** Operators come in at any time, above all when it is crowded. */
function isCommand({ routeOptions }: FastifyRequest): boolean {
  const { declaration } = routeOptions.config
  if (declaration === undefined || declaration === 'page') return false
  return declaration.repeat !== undefined && declaration.access !== 'operator'
}

function refuse(reply: FastifyReply): FastifyReply {
  return sendProblem(reply, {
    name: 'overloaded',
    detail:
      'More commands are under way than the server keeps up with. Nothing was begun: send the same request again.',
    retryAfterMs: randomInt(COME_AGAIN_LEAST_MS, COME_AGAIN_MOST_MS),
  })
}

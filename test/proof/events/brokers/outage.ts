import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Acknowledgement, IncomingMessage } from 'onceonly/inbox'
import type { OutgoingMessage } from 'onceonly/outbox'
import { until } from '../../../../src/testing/until.ts'
import type { ServerKind, Servers, StartedServer } from '../../../../tools/servers/index.ts'
import type { BrokerClient, BrokerWorld } from '../../../support/events/brokers/suite.ts'
import { startOwn } from '../../../support/own-server.ts'
import { pause, resume } from '../../../support/pause.ts'

const MESSAGES = 400
const KEYS = 20
const BATCH = 40
const CALL_MS = 1_500
/** Longer than a restart, so that it is over when the message is redelivered. */
const LATER_MS = 3_000
/** Timers of two processes; and NATS keeps the time of a delivery over a restart in whole seconds. */
const CLOCK_SLACK_MS = 100
const RESTART_SLACK_MS = { nats: 1_000 } as Readonly<Record<string, number>>
/** A new quorum queue of RabbitMQ 3.10 is written down within a second; a crash before that leaves it without a leader. */
const SETTLED_MS = 2_000
/** In the middle of the batch that is published next. */
const CRASH_AFTER_MS = 3
/** Without any confirmation for so long, the broker has not come back. */
const PATIENCE_MS = 120_000
const done: Acknowledgement = { kind: 'done' }

/** What a relay and an inbox see of a broker that goes away and comes back. The server is one of its own. */
export function proveOutage(kind: ServerKind, open: (url: string) => Promise<BrokerWorld>): void {
  describe(`an outage of ${kind}`, () => {
    let servers: Servers
    before(async () => {
      servers = await startOwn(kind)
    })
    after(() => servers.stop())

    for (const [title, proof] of Object.entries(proofs)) {
      test(title, async (t) => {
        const [server] = servers.started
        if (server === undefined) return t.skip(`there is no server of the kind ${kind}`)
        const world = await open(server.url)
        const [sending, receiving] = [await world.connect(), await world.connect()]
        try {
          await proof(server, sending, receiving)
        } finally {
          await sending.stop()
          await receiving.stop()
          await world.end()
        }
      })
    }
  })
}

type Proof = (server: StartedServer, sending: BrokerClient, receiving: BrokerClient) => Promise<void>

const proofs: Record<string, Proof> = {
  'a crash loses nothing, refuses nothing and needs no operator': async (server, sending, receiving) => {
    const ids = new Set<string>()
    await receiving.subscriber.subscribe({ consumer: 'billing', topics: ['paid'], concurrency: 8 }, async ({ id }) => {
      ids.add(id)
      return done
    })
    await sleep(SETTLED_MS)
    const crashes: Promise<void>[] = []
    const sent = numbered('paid')
    const unavailable = await publishAll(sending, sent, (confirmed) => {
      if (confirmed >= MESSAGES / 4 && crashes.length === 0) crashes.push(killAndRevive(server))
    })
    assert.equal(crashes.length, 1)
    await Promise.all(crashes)
    assert.ok(unavailable > 0, 'the outage was noticed')
    await until('all messages arrived', () => ids.size === MESSAGES)
    assert.deepEqual([...ids].toSorted(), sent.map(({ id }) => id).toSorted())
  },

  'through a restart, messages under way are redelivered and postponed ones stay postponed': async (
    server,
    sending,
    receiving,
  ) => {
    const held: IncomingMessage[] = []
    const release = Promise.withResolvers<Acknowledgement>()
    await receiving.subscriber.subscribe({ consumer: 'slow', topics: ['held'], concurrency: 1 }, async (message) => {
      held.push(message)
      return held.length === 1 ? release.promise : done
    })
    const late: { readonly message: IncomingMessage; readonly atMs: number }[] = []
    await receiving.subscriber.subscribe({ consumer: 'late', topics: ['waiting'], concurrency: 1 }, async (message) => {
      late.push({ message, atMs: performance.now() })
      return late.length === 1 ? { kind: 'later', delayMs: LATER_MS } : done
    })
    const steady: string[] = []
    const stuck = Promise.withResolvers<Acknowledgement>()
    await receiving.subscriber.subscribe({ consumer: 'steady', topics: ['steady'], concurrency: 2 }, async ({ id }) => {
      steady.push(id)
      return steady.length === 1 ? stuck.promise : done
    })
    const firsts = ['held', 'waiting', 'steady'].flatMap((topic) => numbered(topic).slice(0, 1))
    await publishAll(sending, firsts)
    await until('each has its first message', () => held.length === 1 && late.length === 1 && steady.length === 1)
    // Two messages of another id and of the same queue: when they have passed, the word `later` has reached the broker.
    await publishAll(sending, numbered('waiting').slice(1, 3))
    await until('the two have passed', () => late.length >= 3)

    await server.halt()
    // The acknowledgement cannot reach the broker.
    release.resolve(done)
    await server.revive()
    await until('both came again', () => held.length >= 2 && late.length >= 4)
    // An effect that takes longer than the outage delays no other message.
    await publishAll(sending, numbered('steady').slice(1, 2))
    await until('the next one passes', () => steady.includes('steady-1')).finally(() => stuck.resolve(done))
    assert.deepEqual(new Set(held.map(({ id }) => id)), new Set(['held-0']))
    assert.ok((held[1]?.deliveries ?? 2) >= 2)
    const [first, again] = late.filter(({ message }) => message.id === 'waiting-0')
    assert.ok(first !== undefined && again !== undefined)
    const waitedMs = again.atMs - first.atMs
    const slackMs = CLOCK_SLACK_MS + (RESTART_SLACK_MS[server.kind] ?? 0)
    assert.ok(waitedMs >= LATER_MS - slackMs, `it came again after ${Math.round(waitedMs)} ms`)
    assert.deepEqual([first.message.deliveries, again.message.deliveries], [1, 2])
  },

  'a broker that hangs is unavailable within the deadline, and confirms when it runs again': async (
    server,
    sending,
    receiving,
  ) => {
    const ids = new Set<string>()
    await receiving.subscriber.subscribe(
      { consumer: 'patient', topics: ['paused'], concurrency: 4 },
      async ({ id }) => {
        ids.add(id)
        return done
      },
    )
    const sent = numbered('paused').slice(0, BATCH)
    await pause(server.pid)
    try {
      // It runs again only after this was answered.
      const answers = await sending.publisher.publish(sent, { timeoutMs: CALL_MS })
      assert.deepEqual([...new Set(answers.map(({ kind }) => kind))], ['unavailable'])
    } finally {
      resume(server.pid)
    }
    await publishAll(sending, sent)
    await until('the batch arrived', () => ids.size === BATCH)
  },
}

async function killAndRevive(server: StartedServer): Promise<void> {
  await sleep(CRASH_AFTER_MS)
  process.kill(-server.pid, 'SIGKILL')
  await server.halt()
  await server.revive()
}

function numbered(topic: string): OutgoingMessage[] {
  return Array.from({ length: MESSAGES }, (_, n) => ({
    id: `${topic}-${n}`,
    topic,
    key: `k-${n % KEYS}`,
    sequence: Math.floor(n / KEYS) + 1,
    body: JSON.stringify({ n }),
    headers: {},
  }))
}

/** As a relay does: publishes unconfirmed messages again, in order. Returns how often that happened. */
async function publishAll(
  { publisher }: BrokerClient,
  messages: readonly OutgoingMessage[],
  onProgress: (confirmed: number) => void = () => {},
): Promise<number> {
  let pending = [...messages]
  let unavailable = 0
  let deadlineMs = performance.now() + PATIENCE_MS
  while (pending.length > 0) {
    assert.ok(performance.now() < deadlineMs, `${pending.length} messages are not confirmed`)
    const batch = pending.slice(0, BATCH)
    const answers = await publisher.publish(batch, { timeoutMs: CALL_MS })
    assert.equal(answers.length, batch.length)
    for (const answer of answers) if (answer.kind === 'refused') assert.fail(answer.reason)
    unavailable += answers.filter(({ kind }) => kind === 'unavailable').length
    const confirmed = new Set(batch.filter((_, index) => answers[index]?.kind === 'confirmed'))
    pending = pending.filter((message) => !confirmed.has(message))
    onProgress(messages.length - pending.length)
    if (confirmed.size === 0) await sleep(50)
    else deadlineMs = performance.now() + PATIENCE_MS
  }
  return unavailable
}

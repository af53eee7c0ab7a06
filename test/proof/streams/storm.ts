import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ClientLink, ClientTransport, Entry, MessageIdentity } from 'onceonly/stream'
import { createWebSocketTransport, identityText } from 'onceonly/stream'
import { createRandom } from '../../../src/testing/random.ts'
import { until } from '../../../src/testing/until.ts'
import { createProxy, type Proxy } from '../../../tools/proxy/index.ts'
import { type Participant, participate } from '../../support/streams/world.ts'
import type { RegionTask } from './region-process.ts'

export interface StormOptions {
  readonly clients: number
  readonly regions: readonly string[]
  /** How long clients send. */
  readonly talkMs: number
  /** Between two messages of one client, on average. */
  readonly pauseMs: number
  readonly offlineMs: number
  readonly databaseUrl: string
  readonly natsUrl: string
  readonly seed: number
  progress?(line: string): void
}

export interface StormResult {
  readonly messages: number
  readonly convergedMs: number
}

/** A region as a process of its own, behind a proxy for its clients and one for its way to NATS. */
interface RegionProcess {
  readonly clients: Proxy
  readonly nats: Proxy
  /** At once, without closing anything. */
  kill(): Promise<void>
  start(): Promise<void>
}

/** A participant whose network can be taken away, and what it had seen when it said something. */
interface Talker extends Participant {
  readonly said: { readonly identity: MessageIdentity; readonly after: number }[]
  offline(off: boolean): void
}

/**
 * The design question over real WebSockets: clients in several regions send and reply, regions are cut off from each
 * other, one is killed, some clients vanish for a while and half of them come back elsewhere, one has a slow link.
 */
export async function runStorm(options: StormOptions): Promise<StormResult> {
  const { regions: names, progress = () => {} } = options
  const random = createRandom(options.seed)
  const namespace = `storm-${randomBytes(4).toString('hex')}`
  const open = async (region: string) =>
    [region, await openRegion({ ...options, region, regions: names, namespace })] as const
  const regions = new Map(await Promise.all(names.map(open)))
  const [first, second, third] = names.map((name) => regions.get(name))
  assert.ok(first && second && third)
  const slow = await createProxy({ targetPort: first.clients.port })
  slow.delayMs = 250
  const portOf = (region: string) => regions.get(region)?.clients.port ?? 0
  const talkers: Talker[] = []
  try {
    for (let n = 0; n < options.clients; n++) {
      const home = names[n % names.length] ?? ''
      const url = (region: string) => `ws://127.0.0.1:${n === 0 && region === home ? slow.port : portOf(region)}/socket`
      talkers.push(await openTalker(url, [home, ...names.filter((name) => name !== home)]))
    }
    await until('every client is live', () => talkers.every(({ client }) => client.status === 'live'))
    progress(`${options.clients} clients in ${names.length} regions send for ${options.talkMs} ms`)
    const talking = Promise.all(talkers.map((talker) => talk(talker, random.below(2 ** 31), options)))
    await Promise.all([disturb({ first, second, third }, talkers, options), talking])
    await everyone('everything was accepted', talkers, isAcknowledged)
    const accepted = talkers.flatMap(({ said }) => said.map(({ identity }) => identityText(identity)))
    const healedMs = performance.now()
    progress(`${accepted.length} messages were accepted; waiting until every client has them`)
    const done = (talker: Talker) => talker.seen.length >= accepted.length && talker.order.length >= accepted.length
    await everyone(`every client has all ${accepted.length}`, talkers, done)
    checkAll(talkers, accepted)
    return { messages: accepted.length, convergedMs: Math.round(performance.now() - healedMs) }
  } finally {
    for (const { client } of talkers) await client.stop()
    await slow.stop()
    for (const region of regions.values()) {
      await region.kill()
      await region.clients.stop()
      await region.nats.stop()
    }
  }
}

interface Regions {
  readonly first: RegionProcess
  readonly second: RegionProcess
  readonly third: RegionProcess
}

/** By parts of the time: two regions are cut off one after the other, one is killed, a quarter of all is offline. */
async function disturb(
  { first, second, third }: Regions,
  talkers: readonly Talker[],
  options: StormOptions,
): Promise<void> {
  const { talkMs, offlineMs, regions, progress = () => {} } = options
  const part = (share: number) => sleep(talkMs * share)
  const away = talkers.slice(1).filter((_, n) => n % 4 === 0)
  await part(0.15)
  progress('the second region is cut off')
  cutOff(second.nats)
  const returning = (async () => {
    for (const talker of away) talker.offline(true)
    await sleep(offlineMs)
    away.forEach((talker, n) => {
      if (n % 2 === 0) talker.client.moveTo(regions[(n + 1) % regions.length] ?? '')
      talker.offline(false)
    })
  })()
  await part(0.25)
  await second.nats.accept()
  progress('the second region is back; the first is killed')
  await first.kill()
  await part(0.1)
  await first.start()
  await part(0.1)
  progress('the third region is cut off')
  cutOff(third.nats)
  await part(0.25)
  await third.nats.accept()
  await returning
  progress('everything is whole again')
}

function cutOff(proxy: Proxy): void {
  proxy.refuse()
  proxy.cut()
}

/** Of each of them, so that a slow machine has something to show as well. */
const SAID_LEAST = 5

/** What is kept for sending is accepted in the end. */
async function talk({ client, seen, said }: Talker, seed: number, { talkMs, pauseMs }: StormOptions): Promise<void> {
  const random = createRandom(seed)
  const untilMs = performance.now() + talkMs
  while (performance.now() < untilMs || said.length < SAID_LEAST) {
    const parent = random.chance(0.5) ? seen.at(-1) : undefined
    const after = seen.length
    const { identity } = await client.send({ text: `${said.length}` }, parent ? { replyTo: idOf(parent) } : {})
    said.push({ identity, after })
    await sleep(2 * pauseMs * random.next())
  }
}

function isAcknowledged({ client }: Talker): boolean {
  return client.pending === 0
}

/** Gives up only when nothing new comes any more, however long all of it takes. */
async function everyone(what: string, talkers: readonly Talker[], done: (talker: Talker) => boolean): Promise<void> {
  const states = () => talkers.map(stateOf).join(', ')
  for (let before = ''; !talkers.every(done); ) {
    before = await until(`${what}, or something of it happened`, states, (now) => now !== before || talkers.every(done))
  }
}

function stateOf({ client, seen, order }: Talker): string {
  return `in ${client.region}: ${client.pending} pending, ${seen.length} seen, ${order.length} ordered`
}

function idOf({ client, epoch, cseq }: Entry): MessageIdentity {
  return { client, epoch, cseq }
}

/** Everything once, nothing before its causes, each client's messages in their order, one final order for all. */
function checkAll(talkers: readonly Talker[], accepted: readonly string[]): void {
  const wanted = [...accepted].sort()
  const [one] = talkers
  for (const talker of talkers) {
    const shown = talker.seen.map(identityText)
    assert.deepEqual(shown.toSorted(), wanted, 'every message once')
    assert.deepEqual(talker.order, one?.order, 'one final order')
    assert.deepEqual(talker.renewed, [], 'no client lost its identity')
    const at = new Map(shown.map((identity, n) => [identity, n]))
    const final = new Map(talker.order.map((identity, n) => [identity, n]))
    for (const other of talkers) {
      checkCauses(other, at, 'shown')
      checkCauses(other, final, 'final')
    }
  }
}

/** What a client had seen before it sent a message precedes that message, everywhere. */
function checkCauses({ seen, said }: Talker, at: ReadonlyMap<string, number>, what: string): void {
  let latest = -1
  let counted = 0
  for (const { identity, after } of said) {
    for (; counted < after; counted++) latest = Math.max(latest, at.get(identityText(seen[counted] as Entry)) ?? -1)
    const own = at.get(identityText(identity)) ?? -1
    assert.ok(own > latest, `${identityText(identity)} was ${what} before something that its sender had seen`)
    latest = own
  }
}

async function openTalker(url: (region: string) => string, regions: readonly string[]): Promise<Talker> {
  const real = createWebSocketTransport({ url })
  const links = new Set<ClientLink>()
  let off = false
  const transport: ClientTransport = {
    connect(region, events) {
      if (off) {
        setTimeout(() => events.closed(null, 'offline'), 1)
        return { send() {}, close() {} }
      }
      const link = real.connect(region, {
        ...events,
        closed(code, reason) {
          links.delete(link)
          events.closed(code, reason)
        },
      })
      links.add(link)
      return link
    },
  }
  const said: Talker['said'][number][] = []
  const participant = await participate(url, { regions, transport })
  return {
    ...participant,
    said,
    offline(now) {
      off = now
      if (now) for (const link of links) link.close()
    },
  }
}

type OpenRegion = StormOptions & Pick<RegionTask, 'region' | 'regions' | 'namespace'>

async function openRegion({ region, regions, namespace, databaseUrl, natsUrl }: OpenRegion): Promise<RegionProcess> {
  const port = await freePort()
  const [clients, nats] = [
    await createProxy({ targetPort: port }),
    await createProxy({ targetPort: Number(new URL(natsUrl).port) }),
  ]
  const task: RegionTask = { region, regions, port, databaseUrl, natsUrl: nats.rewrite(natsUrl), namespace }
  let child: ChildProcess | null = null

  async function start(): Promise<void> {
    const program = fileURLToPath(import.meta.resolve('./region-process.ts'))
    const args = ['--conditions=onceonly-source', program, JSON.stringify(task)]
    const started = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    child = started
    for await (const line of createInterface({ input: started.stdout })) if (line === 'listening') break
    assert.equal(started.exitCode, null, `the region ${region} has ended`)
    started.stdout.resume()
  }

  async function kill(): Promise<void> {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  await start()
  return { clients, nats, start, kill }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('No port is free.')
  return address.port
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

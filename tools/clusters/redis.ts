import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { ClusterNode } from '../servers/node.ts'
import { answers } from '../servers/probe.ts'
import { findProgram, type Program } from '../servers/programs.ts'
import { freePorts, quote } from '../servers/server.ts'
import { createNodes, type Nodes, ready } from './cluster.ts'
import { configOf } from './config.ts'

const SERVER: Program = { name: 'redis-server', variable: 'ONCEONLY_LAB_REDIS', packages: ['redis-server'] }
const SENTINEL: Program = { name: 'redis-sentinel', variable: 'ONCEONLY_LAB_SENTINEL', packages: ['redis-sentinel'] }

const START_BOUND_MS = 60_000
const SENTINELS = 3
const SLOTS = 16_384
const NAME = 'onceonly'

export interface RedisNode extends ClusterNode {
  readonly port: number
}

export interface RedisNodes extends AsyncDisposable {
  readonly nodes: readonly RedisNode[]
  stop(): Promise<void>
}

export interface SentinelCluster extends RedisNodes {
  /** What a client of `ioredis` needs. */
  readonly client: { readonly sentinels: { host: string; port: number }[]; readonly name: string }
  /** As the sentinels say. */
  master(): Promise<RedisNode | null>
  /** One master, and everything else follows it. */
  untilWhole(): Promise<void>
}

export interface SentinelOptions {
  readonly nodes: number
  /** How many replicas must follow for a write to be accepted. */
  readonly minReplicas: number
}

/** Null where Redis is missing and cannot be installed; that is said loudly. */
export async function startSentinels(options: SentinelOptions): Promise<SentinelCluster | null> {
  const [server, sentinel] = [await findProgram(SERVER), await findProgram(SENTINEL)]
  if (server === null || sentinel === null) return null
  return await within(createNodes('sentinel'), (nodes) => startSentinelsIn(nodes, server, sentinel, options))
}

async function startSentinelsIn(
  nodes: Nodes,
  server: string,
  sentinel: string,
  options: SentinelOptions,
): Promise<SentinelCluster> {
  const ports = await freePorts(options.nodes + SENTINELS)
  const [masterPort = 0] = ports
  const servers: RedisNode[] = []
  for (const [at, port] of ports.slice(0, options.nodes).entries()) {
    servers.push(
      await startServer(nodes, server, `redis${at + 1}`, port, 'redis.conf', {
        MIN_REPLICAS: options.minReplicas,
        MORE: at === 0 ? '' : `replicaof 127.0.0.1 ${masterPort}`,
      }),
    )
  }
  const watchers = ports.slice(options.nodes)
  for (const [at, port] of watchers.entries()) {
    const name = `sentinel${at + 1}`
    const config = { PORT: port, FOLDER: nodes.folderOf(name), MASTER_PORT: masterPort }
    const node = await nodes.start({
      name,
      files: { 'sentinel.conf': configOf('sentinel.conf', config) },
      script: `exec ${quote(sentinel)} ./sentinel.conf`,
      accounts: ['redis', 'nobody'],
      stopSignal: 'TERM',
    })
    await ready(`${name} does not answer`, [node], START_BOUND_MS, () => answers(port, 'PING\r\n', '+PONG'))
  }
  const master = async () => {
    for (const port of watchers) {
      const said = await ask(port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)
      if (Array.isArray(said)) return servers.find((each) => String(each.port) === said[1]) ?? null
    }
    return null
  }
  const whole = async () => {
    const [main, known] = [await master(), await ask(watchers[0] ?? 0, 'SENTINEL', 'CKQUORUM', NAME)]
    const info = String(await ask(main?.port ?? 0, 'INFO', 'replication'))
    const follow = info.match(/state=online/g)?.length ?? 0
    return info.includes('role:master') && follow === servers.length - 1 && String(known).startsWith('OK')
  }
  const untilWhole = () => ready('The replicas do not follow', servers, START_BOUND_MS, whole)
  await untilWhole()
  return {
    nodes: servers,
    client: { sentinels: watchers.map((port) => ({ host: '127.0.0.1', port })), name: NAME },
    master,
    untilWhole,
    stop: nodes.stop,
    [Symbol.asyncDispose]: nodes.stop,
  }
}

export interface RedisClusterOptions {
  /** Each with one replica. */
  readonly masters: number
  readonly minReplicas: number
}

export interface RedisCluster extends RedisNodes {
  readonly ports: readonly number[]
  /** The node that holds the slot of a key now. */
  ownerOf(key: string): Promise<RedisNode | null>
  /** Every slot has a master, and every master a replica that follows. */
  untilWhole(): Promise<void>
}

/** Null where Redis is missing and cannot be installed; that is said loudly. */
export async function startRedisCluster(options: RedisClusterOptions): Promise<RedisCluster | null> {
  const server = await findProgram(SERVER)
  return server === null
    ? null
    : await within(createNodes('rcluster'), (nodes) => startClusterIn(nodes, server, options))
}

async function startClusterIn(nodes: Nodes, server: string, options: RedisClusterOptions): Promise<RedisCluster> {
  const { masters, minReplicas } = options
  const count = 2 * masters
  const ports = await freePorts(2 * count)
  const servers: RedisNode[] = []
  for (let at = 0; at < count; at++) {
    const config = { MIN_REPLICAS: minReplicas, BUS_PORT: ports[count + at] ?? 0 }
    servers.push(await startServer(nodes, server, `redis${at + 1}`, ports[at] ?? 0, 'redis-cluster.conf', config))
  }
  const [first = 0] = ports
  const share = Math.ceil(SLOTS / masters)
  for (const [at, { port }] of servers.entries()) {
    if (at < masters) {
      await ask(port, 'CLUSTER', 'ADDSLOTSRANGE', String(at * share), String(Math.min(SLOTS, (at + 1) * share) - 1))
    }
    if (at > 0) await ask(first, 'CLUSTER', 'MEET', '127.0.0.1', String(port), String(ports[count + at]))
  }
  const ids = await Promise.all(servers.map(({ port }) => ask(port, 'CLUSTER', 'MYID')))
  for (const [at, { port }] of servers.slice(masters).entries()) {
    // A node can follow only a master that it has heard of.
    await ready('A replica cannot follow', servers, START_BOUND_MS, async () => {
      return (await ask(port, 'CLUSTER', 'REPLICATE', String(ids[at]))) === 'OK'
    })
  }
  const infoOf = async ({ port }: RedisNode) => String(await ask(port, 'INFO', 'replication'))
  const whole = async () => {
    const infos = await Promise.all(servers.map(infoOf))
    const states = await Promise.all(servers.map(({ port }) => ask(port, 'CLUSTER', 'INFO')))
    const knowAll = states.every((state) => /cluster_state:ok[^]*cluster_slots_ok:16384/.test(String(state)))
    const mains = infos.filter((info) => info.includes('role:master'))
    return knowAll && mains.length === masters && mains.every((info) => info.includes('state=online'))
  }
  const untilWhole = () => ready('The cluster is not whole', servers, START_BOUND_MS, whole)
  await untilWhole()
  return {
    nodes: servers,
    ports: servers.map(({ port }) => port),
    async ownerOf(key) {
      for (const { port } of servers) {
        const slot = Number(await ask(port, 'CLUSTER', 'KEYSLOT', key))
        const ranges = await ask(port, 'CLUSTER', 'SLOTS')
        if (!Array.isArray(ranges)) continue
        const range = (ranges as [number, number, [string, number]][]).find(([from, to]) => from <= slot && slot <= to)
        return servers.find((each) => each.port === range?.[2][1]) ?? null
      }
      return null
    },
    untilWhole,
    stop: nodes.stop,
    [Symbol.asyncDispose]: nodes.stop,
  }
}

async function startServer(
  nodes: Nodes,
  program: string,
  name: string,
  port: number,
  file: string,
  values: Readonly<Record<string, string | number>>,
): Promise<RedisNode> {
  const node = await nodes.start({
    name,
    files: { 'redis.conf': configOf(file, { PORT: port, FOLDER: nodes.folderOf(name), ...values }) },
    script: `exec ${quote(program)} ${quote(join(nodes.folderOf(name), 'redis.conf'))}`,
    accounts: ['redis', 'nobody'],
    stopSignal: 'TERM',
  })
  // A replica that has not synced yet says so instead of PONG, and that is an answer too.
  await ready(`${name} does not answer`, [node], START_BOUND_MS, async () => {
    return (await answers(port, 'PING\r\n', '+PONG')) || (await answers(port, 'PING\r\n', '-MASTERDOWN'))
  })
  return Object.assign(node, { port })
}

/** What a server answers to one command, or null where it does not: it may be dead or paused. */
export async function ask(port: number, command: string, ...args: string[]): Promise<unknown> {
  const client = new Redis(port, '127.0.0.1', { ...ONE_TRY, lazyConnect: true })
  client.on('error', () => {})
  try {
    await client.connect()
    return await client.call(command, args)
  } catch {
    return null
  } finally {
    client.disconnect()
  }
}

const ONE_TRY = { retryStrategy: () => null, connectTimeout: 1_000, commandTimeout: 1_000, maxRetriesPerRequest: 0 }

async function within<T>(nodes: Nodes, start: (nodes: Nodes) => Promise<T>): Promise<T> {
  try {
    return await start(nodes)
  } catch (error) {
    await nodes.stop()
    throw error
  }
}

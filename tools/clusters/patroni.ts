import type { ClusterNode } from '../servers/node.ts'
import { debianFolders, postgres } from '../servers/postgres.ts'
import { answers } from '../servers/probe.ts'
import { findProgram, type Program } from '../servers/programs.ts'
import { findPrograms, freePorts, quote } from '../servers/server.ts'
import { createNodes, type Nodes, ready } from './cluster.ts'
import { configOf } from './config.ts'

const { filesWhileInstalling } = postgres
const PROGRAMS = {
  patroni: {
    name: 'patroni',
    variable: 'ONCEONLY_LAB_PATRONI',
    packages: ['postgresql', 'patroni', 'python3-etcd', 'python3-psycopg2'],
    filesWhileInstalling,
  },
  etcd: { name: 'etcd', variable: 'ONCEONLY_LAB_ETCD', packages: ['etcd-server'] },
  haproxy: { name: 'haproxy', variable: 'ONCEONLY_LAB_HAPROXY', packages: ['haproxy'] },
} as const satisfies Record<string, Program>

/** The shortest times that Patroni takes. */
const TTL_SECONDS = 20
const LOOP_SECONDS = 2
const RETRY_SECONDS = 3
/** Two initial copies and an election on a busy machine. */
const START_BOUND_MS = 180_000
/** The protocol's question whether the server speaks TLS. */
const ASK_TLS = '\x00\x00\x00\x08\x04\xd2\x16\x2f'
const PASSWORD = 'laboratory'

export interface PatroniOptions {
  /** How many PostgreSQL nodes. */
  readonly nodes: number
  /** With a synchronous standby, strictly: without one nothing is acknowledged. */
  readonly synchronous: boolean
}

export interface PatroniCluster extends AsyncDisposable {
  /** Leads to the primary, through HAProxy. */
  readonly url: string
  readonly nodes: readonly PatroniNode[]
  primary(): Promise<PatroniNode | null>
  /** Every member runs and follows, as Patroni sees it. */
  untilWhole(): Promise<void>
  stop(): Promise<void>
}

export interface PatroniNode extends ClusterNode {
  /** Leads to this node, whatever it is. */
  readonly url: string
  readonly restPort: number
}

/** Null where a program is missing and cannot be installed; that is said loudly. */
export async function startPatroni(options: PatroniOptions): Promise<PatroniCluster | null> {
  const patroni = await findProgram(PROGRAMS.patroni)
  const etcd = await findProgram(PROGRAMS.etcd)
  const haproxy = await findProgram(PROGRAMS.haproxy)
  const programs = findPrograms(['initdb', 'postgres', 'pg_rewind', 'pg_basebackup'], [], debianFolders())
  if (patroni === null || etcd === null || haproxy === null || programs === undefined) return null
  const nodes = createNodes('patroni')
  try {
    return await startIn(nodes, { patroni, etcd, haproxy, programs }, options)
  } catch (error) {
    await nodes.stop()
    throw error
  }
}

interface Paths {
  readonly patroni: string
  readonly etcd: string
  readonly haproxy: string
  readonly programs: string
}

async function startIn(nodes: Nodes, paths: Paths, options: PatroniOptions): Promise<PatroniCluster> {
  const [etcdPort = 0, peerPort = 0, proxyPort = 0, ...ports] = await freePorts(3 + 2 * options.nodes)
  await startEtcd(nodes, paths.etcd, etcdPort, peerPort)
  const members: PatroniNode[] = []
  for (let at = 0; at < options.nodes; at++) {
    const [port = 0, restPort = 0] = ports.slice(2 * at)
    members.push(await startMember(nodes, paths, options, { at, etcdPort, port, restPort }))
    // The first one creates the cluster, so that it is the first primary.
    if (at === 0) await ready('There is no primary', members, START_BOUND_MS, () => says(restPort, '/primary'))
  }
  const servers = members.map(({ name, url, restPort }) => {
    return `  server ${name} ${new URL(url).host} maxconn 200 check port ${restPort}`
  })
  const proxy = await nodes.start({
    name: 'haproxy',
    files: {
      'haproxy.cfg': configOf('haproxy.cfg', { ADDRESS: `127.0.0.1:${proxyPort}`, SERVERS: servers.join('\n') }),
    },
    script: `exec ${quote(paths.haproxy)} -db -f haproxy.cfg`,
    accounts: ['haproxy', 'nobody'],
    stopSignal: 'TERM',
  })

  const whole = async () => {
    const asked = (path: string) => Promise.all(members.map(({ restPort }) => says(restPort, path)))
    const primaries = await asked('/primary')
    const standbys = await asked('/replica')
    const isSafe = !options.synchronous || options.nodes < 2 || (await asked('/synchronous')).includes(true)
    const isOneOf = members.every((_, at) => primaries[at] !== standbys[at])
    return isSafe && isOneOf && primaries.filter(Boolean).length === 1
  }
  const untilWhole = () => ready('The cluster is not whole', members, START_BOUND_MS, whole)
  await untilWhole()
  await ready('HAProxy leads nowhere', [proxy], START_BOUND_MS, () => answers(proxyPort, ASK_TLS, 'N'))
  return {
    url: urlOf(proxyPort),
    nodes: members,
    async primary() {
      for (const member of members) if (await says(member.restPort, '/primary')) return member
      return null
    },
    untilWhole,
    stop: nodes.stop,
    [Symbol.asyncDispose]: nodes.stop,
  }
}

async function startEtcd(nodes: Nodes, etcd: string, port: number, peerPort: number): Promise<void> {
  const [client, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`]
  const node = await nodes.start({
    name: 'etcd',
    script: `exec ${quote(etcd)} --data-dir data --log-level warn --name etcd \\
      --listen-client-urls ${client} --advertise-client-urls ${client} \\
      --listen-peer-urls ${peer} --initial-advertise-peer-urls ${peer} --initial-cluster etcd=${peer}`,
    accounts: ['etcd', 'nobody'],
    stopSignal: 'TERM',
  })
  await ready('etcd does not answer', [node], START_BOUND_MS, () => says(port, '/health'))
}

interface Member {
  readonly at: number
  readonly etcdPort: number
  readonly port: number
  readonly restPort: number
}

async function startMember(nodes: Nodes, paths: Paths, options: PatroniOptions, member: Member): Promise<PatroniNode> {
  const { at, etcdPort, port, restPort } = member
  const name = `postgres${at + 1}`
  const folder = nodes.folderOf(name)
  const config = configOf('patroni.yml', {
    NAME: name,
    REST_ADDRESS: `127.0.0.1:${restPort}`,
    ETCD_HOSTS: `127.0.0.1:${etcdPort}`,
    TTL_SECONDS,
    LOOP_SECONDS,
    RETRY_SECONDS,
    SYNCHRONOUS: options.synchronous,
    POSTGRES_ADDRESS: `127.0.0.1:${port}`,
    FOLDER: folder,
    POSTGRES_PROGRAMS: paths.programs,
    PASSWORD,
    SOCKET_FOLDER: folder,
  })
  const node = await nodes.start({
    name,
    files: { 'patroni.yml': config },
    script: memberScript(paths.patroni),
    accounts: ['postgres', 'nobody'],
    stopSignal: 'TERM',
  })
  return Object.assign(node, { url: urlOf(port), restPort })
}

/**
 * PostgreSQL leaves Patroni's process group and outlives a Patroni that is killed. So a shell stands around both and ends the
 * server too; at once, because the data is thrown away.
 */
function memberScript(patroni: string): string {
  return `
    rm -f data/postmaster.pid
    ${quote(patroni)} patroni.yml & patroni=$!
    over() {
      kill -KILL "$patroni" 2>/dev/null
      server=$(head -n 1 data/postmaster.pid 2>/dev/null) && kill -QUIT "$server" 2>/dev/null
      exit 0
    }
    trap over TERM
    wait "$patroni"
    over`
}

/** Whether an HTTP server on loopback answers 200. */
async function says(port: number, path: string): Promise<boolean> {
  try {
    const { status } = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(ANSWER_MS) })
    return status === 200
  } catch {
    return false
  }
}

/** A paused node accepts and says nothing. */
const ANSWER_MS = 1_000

function urlOf(port: number): string {
  return `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`
}

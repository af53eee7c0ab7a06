import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { createProxy, type Proxy } from '../proxy/index.ts'
import { nats } from '../servers/nats.ts'
import type { ClusterNode } from '../servers/node.ts'
import { answers } from '../servers/probe.ts'
import { findProgram, type Program } from '../servers/programs.ts'
import { freePorts, quote } from '../servers/server.ts'
import { createNodes, ready } from './cluster.ts'
import { configOf } from './config.ts'

const SERVER: Program = { name: 'nats-server', variable: 'ONCEONLY_LAB_NATS', packages: nats.packages }

const NODES = 3
const START_BOUND_MS = 60_000

export interface BrokerNode extends ClusterNode {
  readonly url: string
}

export interface BrokerCluster extends AsyncDisposable {
  readonly nodes: readonly BrokerNode[]
  /** Cuts a node off from the other nodes; its clients still reach it. Gives the way back. */
  partition(node: BrokerNode): Promise<() => Promise<void>>
  stop(): Promise<void>
}

/** Null where NATS is missing and cannot be installed; that is said loudly. */
export async function startNatsCluster(): Promise<BrokerCluster | null> {
  const program = await findProgram(SERVER)
  if (program === null) return null
  const group = createNodes('nats')
  /** One for each route, by the node that uses it and the node that it leads to. */
  const proxies: { readonly from: number; readonly to: number; readonly proxy: Proxy }[] = []
  const stop = async () => {
    await group.stop()
    for (const { proxy } of proxies) await proxy.stop()
  }
  try {
    const ports = await freePorts(2 * NODES)
    const [clients, routes] = [ports.slice(0, NODES), ports.slice(NODES)]
    const others = (node: number) => [...routes.keys()].filter((other) => other !== node)
    for (const from of routes.keys()) {
      for (const to of others(from))
        proxies.push({ from, to, proxy: await createProxy({ targetPort: routes[to] ?? 0 }) })
    }
    const nodes: BrokerNode[] = []
    for (const [at, port] of clients.entries()) {
      const name = `nats${at + 1}`
      const own = proxies.filter(({ from }) => from === at).map(({ proxy }) => `"nats://127.0.0.1:${proxy.port}"`)
      const config = configOf('nats.conf', {
        NAME: name,
        PORT: port,
        FOLDER: group.folderOf(name),
        CLUSTER_PORT: routes[at] ?? 0,
        ROUTES: own.join(', '),
      })
      const node = await group.start({
        name,
        files: { 'nats.conf': config },
        script: `exec ${quote(program)} --config nats.conf`,
        accounts: nats.accounts,
        stopSignal: nats.stopSignal,
      })
      nodes.push(Object.assign(node, { url: `nats://127.0.0.1:${port}` }))
    }
    for (const [at, port] of clients.entries()) {
      await ready(`nats${at + 1} does not answer`, nodes, START_BOUND_MS, () => answers(port, '', 'INFO '))
    }
    await ready('JetStream has no leader', nodes, START_BOUND_MS, () => hasLeader(clients[0] ?? 0))
    return {
      nodes,
      async partition(node) {
        const at = nodes.indexOf(node)
        const cut = proxies.filter(({ from, to }) => from === at || to === at)
        for (const { proxy } of cut) {
          proxy.refuse()
          proxy.cut()
        }
        return async () => {
          for (const { proxy } of cut) await proxy.accept()
        }
      },
      stop,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Streams can be made once the servers have chosen the one that keeps the list of them. */
async function hasLeader(port: number): Promise<boolean> {
  const connection = await connect({ servers: `127.0.0.1:${port}`, reconnect: false, timeout: ANSWER_MS })
  try {
    await (await jetstreamManager(connection, { timeout: ANSWER_MS })).streams.names().next()
    return true
  } finally {
    await connection.close()
  }
}

const ANSWER_MS = 2_000

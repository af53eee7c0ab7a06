import { answers } from '../servers/probe.ts'
import { findProgram, type Program } from '../servers/programs.ts'
import { rabbitmq } from '../servers/rabbitmq.ts'
import { findPrograms, freePorts, quote } from '../servers/server.ts'
import { createNodes, type Nodes, ready } from './cluster.ts'
import { configOf } from './config.ts'
import type { BrokerCluster, BrokerNode } from './nats.ts'

const SERVER: Program = { name: 'rabbitmq-server', variable: 'ONCEONLY_LAB_RABBITMQ', packages: rabbitmq.packages }

const NODES = 3
const START_BOUND_MS = 120_000
/** The command in Debian's PATH insists on root or its own account; the programs that it calls do not. */
const DEBIAN_FOLDER = '/usr/lib/rabbitmq/bin'

/** Null where RabbitMQ is missing and cannot be installed; that is said loudly. */
export async function startRabbitmqCluster(): Promise<BrokerCluster | null> {
  if ((await findProgram(SERVER)) === null) return null
  const programs = findPrograms(['rabbitmq-server'], [], [DEBIAN_FOLDER])
  if (programs === undefined) return null
  const group = createNodes('rabbitmq')
  try {
    return await startIn(group, programs)
  } catch (error) {
    await group.stop()
    throw error
  }
}

async function startIn(group: Nodes, programs: string): Promise<BrokerCluster> {
  const [epmdPort = 0, ...ports] = await freePorts(1 + 2 * NODES)
  // One port mapper for all of them, in the foreground, so that it ends with the cluster.
  await group.start({
    name: 'epmd',
    script: `
      epmd=$(command -v epmd || ls -d /usr/lib/erlang/erts-*/bin/epmd | head -n 1)
      exec "$epmd" -port ${epmdPort} -address 127.0.0.1`,
    accounts: rabbitmq.accounts,
    stopSignal: 'TERM',
  })
  const nodes: BrokerNode[] = []
  for (let at = 0; at < NODES; at++) {
    const [port = 0, distPort = 0] = ports.slice(2 * at)
    const name = `rabbit${at + 1}`
    const node = await group.start({
      name,
      files: { 'rabbitmq.conf': configOf('rabbitmq.conf', { PORT: port }), plugins: '[].\n' },
      script: nodeScript(programs, group.folderOf(name), { name, distPort, epmdPort }),
      accounts: rabbitmq.accounts,
      stopSignal: 'TERM',
    })
    nodes.push(Object.assign(node, { url: `amqp://guest:guest@127.0.0.1:${port}` }))
    // One after the other: the first one makes the cluster, and the others find it.
    await ready(`${name} does not answer`, nodes, START_BOUND_MS, () => answers(port, 'AMQP\0\0\x09\x01', '\x01\0\0'))
  }
  return {
    nodes,
    // The nodes share an address, so that nothing stands between them that could be cut. A node that stands still is as silent.
    async partition(node) {
      await node.pause()
      return async () => node.resume()
    },
    stop: group.stop,
    [Symbol.asyncDispose]: group.stop,
  }
}

interface Member {
  readonly name: string
  readonly distPort: number
  readonly epmdPort: number
}

function nodeScript(programs: string, folder: string, { name, distPort, epmdPort }: Member): string {
  const at = (file: string) => quote(`${folder}/${file}`)
  return `
    export ERL_EPMD_PORT=${epmdPort} ERL_EPMD_ADDRESS=127.0.0.1
    export RABBITMQ_NODENAME=${name}@localhost RABBITMQ_DIST_PORT=${distPort}
    export RABBITMQ_MNESIA_BASE=${at('data')} RABBITMQ_LOG_BASE=${at('logs')} RABBITMQ_LOGS=-
    export RABBITMQ_CONF_ENV_FILE=${at('none')} RABBITMQ_CONFIG_FILE=${at('rabbitmq.conf')}
    export RABBITMQ_ADVANCED_CONFIG_FILE=${at('none')} RABBITMQ_ENABLED_PLUGINS_FILE=${at('plugins')}
    export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-setcookie onceonly +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none'
    export RUNNING_UNDER_SYSTEMD=true
    exec ${quote(`${programs}/rabbitmq-server`)}`
}

import { join } from 'node:path'
import { answers } from './probe.ts'
import { findPrograms, type Place, quote, type Recipe } from './server.ts'

/** The command in Debian's PATH insists on root or its own account; the programs that it calls do not. */
const DEBIAN_FOLDER = '/usr/lib/rabbitmq/bin'

export const rabbitmq = {
  kind: 'rabbitmq',
  variable: 'ONCEONLY_TEST_RABBITMQ_URL',
  packages: ['rabbitmq-server'],
  accounts: ['rabbitmq', 'nobody'],
  stopSignal: 'TERM',
  find: () => findPrograms(['rabbitmq-server'], [], [DEBIAN_FOLDER]),
  // For the distribution of Erlang, and for its port mapper.
  morePorts: 2,
  script,
  isReady,
  url: ({ port }) => `amqp://guest:guest@127.0.0.1:${port}`,
} as const satisfies Recipe

function script(programs: string, { folder, port, morePorts: [distPort = 0, epmdPort = 0] }: Place): string {
  const at = (name: string) => quote(join(folder, name))
  // The port mapper is started here, in the foreground, because the one that Erlang starts by itself is a daemon that
  // outlives the server. It belongs to the server's process group, and ends with it.
  // As under systemd no shell stands in between, which would start a second Erlang only to stop the first one.
  // The schedulers do not spin while they wait: tests share their cores with the server.
  return `
    export ERL_EPMD_PORT=${epmdPort} ERL_EPMD_ADDRESS=127.0.0.1
    export RABBITMQ_NODENAME=onceonly-${port}@localhost RABBITMQ_NODE_IP_ADDRESS=127.0.0.1
    export RABBITMQ_NODE_PORT=${port} RABBITMQ_DIST_PORT=${distPort}
    export RABBITMQ_MNESIA_BASE=${at('data')} RABBITMQ_LOG_BASE=${at('logs')} RABBITMQ_LOGS=-
    export RABBITMQ_CONF_ENV_FILE=${at('none')} RABBITMQ_CONFIG_FILE=${at('none')}
    export RABBITMQ_ADVANCED_CONFIG_FILE=${at('none')} RABBITMQ_ENABLED_PLUGINS_FILE=${at('plugins')}
    export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none'
    export RUNNING_UNDER_SYSTEMD=true
    [ -e plugins ] || echo '[].' >plugins
    epmd=$(command -v epmd || ls -d /usr/lib/erlang/erts-*/bin/epmd | head -n 1)
    "$epmd" -port ${epmdPort} -address 127.0.0.1 &
    exec ${quote(join(programs, 'rabbitmq-server'))}`
}

/** It listens when everything else has been started; the answer to the protocol's own greeting is a method frame. */
function isReady({ port }: Place): Promise<boolean> {
  return answers(port, 'AMQP\0\0\x09\x01', '\x01\0\0')
}

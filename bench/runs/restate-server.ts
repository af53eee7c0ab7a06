import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { createFolder } from '../harness/folder.ts'
import { peerFile } from '../harness/peers.ts'

/** A Restate server with a log of its own, empty, for one round. */
export interface RestateServer extends AsyncDisposable {
  readonly pid: number
  /** Where calls of services go in. */
  readonly ingress: string
  /** Asks the admin side, which answers JSON. */
  admin(path: string, body: object): Promise<unknown>
}

/** The 24 of its default are meant for a cluster; on two cores fewer logs to sync were no slower. */
const PARTITIONS = 2
/** It starts within two seconds; a machine that is busy takes longer. */
const START_MS = 60_000
const ANSWER_MS = 10_000
const NODE = 'bench'

/** As it comes, with every write of its log synced; on sockets of the file system, so that no port is taken. */
export async function startRestate(): Promise<RestateServer> {
  const folder = createFolder()
  const program = peerFile(`@restatedev/restate-server-${process.platform}-${process.arch}`, 'bin/restate-server')
  const place = ['--base-dir', folder.file(''), '--node-name', NODE, '--listen-mode', 'unix']
  const args = ['--no-logo', ...place, '--default-num-partitions', String(PARTITIONS)]
  const child = spawn(program, args, {
    env: { ...process.env, RESTATE_DISABLE_TELEMETRY: 'true', RESTATE_LOG_FILTER: 'error' },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  // However this process ends, its server does not outlive it.
  const abandon = () => void child.kill('SIGKILL')
  process.once('exit', abandon)
  const exited = once(child, 'exit')
  const socket = (name: string) => folder.file(`${NODE}/${name}.sock`)
  const admin = (path: string, body: object) => post(socket('admin'), path, JSON.stringify(body))
  await untilReady(() => admin('/query', { query: 'select count(*) as n from sys_invocation' }), exited)
  return {
    pid: child.pid as number,
    ingress: socket('ingress'),
    admin,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await exited
      process.off('exit', abandon)
      folder[Symbol.dispose]()
    },
  }
}

async function untilReady(ask: () => Promise<unknown>, exited: Promise<unknown>): Promise<void> {
  const deadline = performance.now() + START_MS
  let ended = false
  void exited.then(() => {
    ended = true
  })
  for (;;) {
    try {
      await ask()
      return
    } catch (cause) {
      if (ended || performance.now() > deadline) throw new Error('Restate does not start.', { cause })
      await sleep(50)
    }
  }
}

async function post(socketPath: string, path: string, body: string): Promise<unknown> {
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const asked = request({ socketPath, path, method: 'POST', headers, signal: AbortSignal.timeout(ANSWER_MS) })
  asked.end(body)
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  const text = (await response.setEncoding('utf8').toArray()).join('')
  if ((response.statusCode ?? 0) >= 300) throw new Error(`Restate answered ${response.statusCode}: ${text}`)
  return JSON.parse(text)
}

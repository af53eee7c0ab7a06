import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { Agent, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLedger } from 'onceonly'
import { createGateway } from 'onceonly/gateway'
import { sqliteStore } from 'onceonly/sqlite'
import { loadPeer } from '../harness/peers.ts'
import { readTask } from '../harness/program.ts'
import type { PeerName, ProxyTask } from './task.ts'
import { PATH } from './task.ts'

/** One proxy in a process of its own. */
const task = readTask<ProxyTask & { readonly upstream: string }>()
const { upstream } = task
if (task.kind === 'ours') await ours(task.path)
else await plain(task.peer)

async function ours(path: string): Promise<void> {
  const store = sqliteStore(path)
  const ledger = createLedger({ store })
  const rule = { method: 'POST', path: PATH, key: 'required', caller: 'shared', replay: 'trusted' } as const
  const gateway = createGateway({ config: { upstream, routes: [rule] }, ledger, drainMs: 0 })
  const { port } = await gateway.listen(0)
  console.log(`http://127.0.0.1:${port}`)
  process.once('SIGTERM', () => void stop())
  async function stop(): Promise<void> {
    await gateway.stop()
    await ledger.stop()
    await store.stop()
  }
}

interface Httpxy {
  createProxyServer(options: { target: string; agent: Agent }): {
    web(request: IncomingMessage, response: ServerResponse): Promise<void>
  }
}

interface FastProxy {
  default(options: { base: string; undici: { connections: number; pipelining: number } }): {
    proxy(request: IncomingMessage, response: ServerResponse, source: string, options: object): void
    close(): void
  }
}

/** As fast as its manual makes it: kept-alive connections, and as many as there are callers. */
async function listenerOf(peer: PeerName): Promise<RequestListener> {
  switch (peer) {
    case 'httpxy': {
      const { createProxyServer } = await loadPeer<Httpxy>(peer)
      const proxy = createProxyServer({ target: upstream, agent: new Agent({ keepAlive: true }) })
      return (request, response) => void proxy.web(request, response)
    }
    case 'fast-proxy': {
      const { default: create } = await loadPeer<FastProxy>(peer)
      const { proxy } = create({ base: upstream, undici: { connections: 64, pipelining: 1 } })
      return (request, response) => proxy(request, response, request.url ?? '/', {})
    }
  }
}

async function plain(peer: PeerName): Promise<void> {
  const server = createServer(await listenerOf(peer))
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  // Its pool may keep the process alive for long.
  process.once('SIGTERM', () => process.exit(0))
}

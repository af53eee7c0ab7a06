import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterNode, NodeSpec } from '../servers/node.ts'
import { startNode } from '../servers/node.ts'
import { unprivilegedAccount } from '../servers/server.ts'

/** What is the same for every cluster: a folder, nodes that are started one after the other, and an end that leaves nothing. */
export interface Nodes extends AsyncDisposable {
  readonly folder: string
  /** `folder` is made of the name. */
  start(spec: Omit<NodeSpec, 'folder' | 'owner'> & { readonly accounts: readonly string[] }): Promise<ClusterNode>
  folderOf(name: string): string
  stop(): Promise<void>
}

/** Where a cluster lives that is to outlast nothing. Short, because sockets have paths of 107 bytes at most. */
export function createNodes(kind: string): Nodes {
  const folder = mkdtempSync(join(tmpdir(), `onceonly-${kind}-`))
  // The nodes run under accounts of their own, and each may enter its folder.
  chmodSync(folder, 0o711)
  const nodes: ClusterNode[] = []
  const folderOf = (name: string) => join(folder, name)

  async function stop(): Promise<void> {
    const ends = await Promise.allSettled(nodes.splice(0).map((node) => node.stop()))
    rmSync(folder, { recursive: true, force: true })
    const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
    if (failures.length > 0) throw new AggregateError(failures, `Nodes of ${kind} did not end.`)
  }

  return {
    folder,
    folderOf,
    async start({ accounts, ...spec }) {
      const node = await startNode({ ...spec, folder: folderOf(spec.name), owner: unprivilegedAccount(accounts) })
      nodes.push(node)
      return node
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

/** Asks until the answer is yes. What it waits for stands in the error, with the logs of the nodes. */
export async function ready(
  what: string,
  nodes: readonly ClusterNode[],
  boundMs: number,
  ask: () => Promise<boolean>,
): Promise<void> {
  const deadlineMs = performance.now() + boundMs
  for (;;) {
    if (await ask().catch(() => false)) return
    if (performance.now() > deadlineMs) {
      const logs = nodes.map((node) => `${node.name}:\n${node.log()}`).join('\n')
      throw new Error(`${what} within ${boundMs} ms. The ends of the logs:\n${logs}`)
    }
    await sleep(POLL_MS)
  }
}

/** Each question is one request on loopback, and clusters take seconds for everything. */
const POLL_MS = 100

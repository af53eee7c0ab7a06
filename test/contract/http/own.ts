import type { Server } from 'node:http'
import type { TestContext } from 'node:test'
import type { Ledger } from 'onceonly'
import { createLedger } from 'onceonly'
import type { MemoryTx } from 'onceonly/memory'
import { memoryStore } from 'onceonly/memory'
import { listen } from './listen.ts'

export interface Own {
  readonly ledger: Ledger<MemoryTx>
  readonly options: { readonly ledger: Ledger<MemoryTx>; who(): { tenant: string; caller: string } }
  /** Sends one request under a key, to a server that ends with the test. */
  to(server: Server): Promise<(init?: RequestInit & { key?: string | null; path?: string }) => Promise<Response>>
}

/** A ledger of its own for what only one framework can do. */
export function own(context: TestContext): Own {
  const ledger = createLedger({ store: memoryStore({ testClock: true }), background: false })
  context.after(() => ledger.stop())
  return {
    ledger,
    options: { ledger, who: () => ({ tenant: 'acme', caller: 'ann' }) },
    async to(server) {
      const { port, stop } = await listen(server)
      context.after(stop)
      return ({ key = 'key-1', path = '/things', headers, ...init } = {}) =>
        fetch(`http://127.0.0.1:${port}${path}`, {
          method: 'POST',
          body: '{"amount":1}',
          ...init,
          headers: {
            'content-type': 'application/json',
            ...(key === null ? {} : { 'idempotency-key': key }),
            ...(headers as Record<string, string> | undefined),
          },
        })
    },
  }
}

import { OnceError } from '../../src/ledger/core/errors.ts'
import type { Request } from '../../src/ledger/core/request.ts'
import type { Applied, Call, Claims, TransactionalStore, Watch } from '../../src/ledger/store/port.ts'
import { createRequestGroup } from '../../src/ledger/store/request-group.ts'
import type { MemoryTx } from '../../src/ledger/stores/memory/index.ts'
import { applyAll } from '../../src/testing/apply-all.ts'
import { linkTransactions } from './network-transactions.ts'
import type { LinkParts, Wire } from './wire.ts'
import { createWire } from './wire.ts'

/** A store as one process sees it: behind a network that delays, loses, repeats and reorders. */
export interface Link {
  readonly store: TransactionalStore<MemoryTx>
  /** Nothing passes in either direction for this long. */
  cut(ms: number): void
  isCut(): boolean
}

export function createLink(parts: LinkParts): Link {
  const { simulation } = parts
  let cutUntil = 0
  const isCut = () => simulation.now() < cutUntil
  const wire = createWire(parts, isCut)
  return {
    isCut,
    cut(ms) {
      cutUntil = Math.max(cutUntil, simulation.now() + ms)
    },
    store: linkedStore(wire),
  }
}

function linkedStore(wire: Wire): TransactionalStore<MemoryTx> {
  const ask = <T>(what: string, timeoutMs: number, perform: () => Promise<T>) =>
    wire.send({ what, timeoutMs, repeatable: false, perform })
  const { store } = wire
  return {
    name: 'simulated',
    claims: linkClaims(wire),
    transactions: linkTransactions(wire),
    queries: {
      get: (id, call) => ask('get', call.timeoutMs, () => store().queries.get(id, call)),
      list: (filter, page, call) => ask('list', call.timeoutMs, () => store().queries.list(filter, page, call)),
      count: (filter, call) => ask('count', call.timeoutMs, () => store().queries.count(filter, call)),
      lapsed: (from, limit, call) => ask('lapsed', call.timeoutMs, () => store().queries.lapsed(from, limit, call)),
      unknowns: (page, call) => ask('unknowns', call.timeoutMs, () => store().queries.unknowns(page, call)),
      busiest: (since, limit, call) =>
        ask('busiest', call.timeoutMs, () => store().queries.busiest(since, limit, call)),
    },
    upkeep: {
      sweep: (cursor, limit, call) => ask('sweep', call.timeoutMs, () => store().upkeep.sweep(cursor, limit, call)),
      tally: (tally, call) => ask('tally', call.timeoutMs, () => store().upkeep.tally(tally, call)),
    },
    clock: {
      now: (call) => ask('clock', call.timeoutMs, () => store().clock.now(call)),
      advance: (ms, call) => ask('advance', call.timeoutMs, () => store().clock.advance(ms, call)),
    },
    stop: async () => {},
  }
}

function linkClaims(wire: Wire): Claims {
  const { random, process, weather, store } = wire

  /** Of a batch only some rows may be decided; the others fail alone, and their callers get the error. */
  async function decideSome(requests: readonly Request[], call: Call): Promise<readonly Applied[]> {
    if (requests.length < 2 || !random.chance(weather().partial)) return await applyAll(store(), requests, call)
    const chosen = requests.filter(() => random.chance(0.5))
    const decided = await applyAll(store(), chosen, call)
    const refused = new OnceError('store_busy', 'The simulated row is locked.')
    return requests.map((request) => decided[chosen.indexOf(request)] ?? { error: refused })
  }

  /** The same group commit as in the stores with a server, in the process's own time. */
  const group = createRequestGroup(process.runtime, {
    lanes: 2,
    stopped: () => new OnceError('stopped', 'The simulated store was stopped.'),
    flush: async (requests, call) => {
      const what = requests.map(({ kind }) => kind).join('+')
      const repeatable = requests.every(({ kind }) => kind !== 'resolve' && kind !== 'forget')
      const perform = () => decideSome(requests, call)
      const answers = await wire.send({ what, timeoutMs: call.timeoutMs, repeatable, perform })
      for (const [index, request] of requests.entries()) {
        const answer = answers[index]
        if (answer !== undefined && 'decision' in answer) wire.heard(request, answer)
      }
      return answers
    },
  })

  return {
    apply: group.apply,
    read: (ids, call) =>
      wire.send({
        what: 'read',
        timeoutMs: call.timeoutMs,
        repeatable: false,
        perform: () => store().claims.read(ids, call),
      }),
    watch: (wake): Watch => {
      const inner = store().claims.watch((ids) => {
        if (process.crashed) inner.stop()
        // Wakes are hints: some are lost, some are about nothing in particular.
        else if (!wire.isCut() && !random.chance(0.2)) wire.deliver(() => wake(random.chance(0.1) ? null : ids))
      })
      const ready = new Promise<void>((resolve) => wire.deliver(resolve))
      return { ready, stop: () => inner.stop() }
    },
  }
}

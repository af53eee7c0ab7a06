import { type BusyCaller, type Identity, isOnceError } from 'onceonly'
import type { Admin, Finding, Paging, Status } from 'onceonly/admin'

interface RowPage<Row> {
  readonly rows: readonly Row[]
  readonly cursor: string | null
}

/**
 * Where the claims of messages and the locks of the guard are in a store of their own, operators still have one console:
 * lists go through one store and then through the other, and an action goes to the store that holds the record. While the
 * store of the claims is away the rest is shown, marked as incomplete.
 */
export function bothStores(main: Admin, claims: Admin): Admin {
  const holding = async (identity: Identity) => ((await main.inspect(identity)) === null ? claims : main)
  return {
    ...main,
    async status() {
      const [first, second] = await Promise.all([main.status(), unlessAway(claims.status(), null)])
      if (second === null) {
        const store = `${first.store}; the store of the claims does not answer`
        return { ...first, store, standing: { ...first.standing, claimsAway: true } }
      }
      return { ...added(first, second), store: `${first.store}, claims in ${second.store}` }
    },
    async standing() {
      const [first, second] = await Promise.all([main.standing(), unlessAway(claims.standing(), null)])
      // What the other store has is shown all the same, and what is missing is named.
      if (second === null) return { ...first, claimsAway: true }
      return {
        ...first,
        staleLeases: first.staleLeases + second.staleLeases,
        unknownWaiting: first.unknownWaiting + second.unknownWaiting,
      }
    },
    records: (filter, page) => inTurn(page, (of, each) => of.records(filter, each)),
    search: (key, page) => inTurn(page, (of, each) => of.search(key, each)),
    unknowns: (page) => inTurn(page, (of, each) => of.unknowns(each)),
    inspect: async (of) => (await main.inspect(of)) ?? (await claims.inspect(of)),
    answer: async (id) => (await main.answer(id)) ?? (await claims.answer(id)),
    stale: async (page) => [...(await main.stale(page)), ...(await unlessAway(claims.stale(page), []))],
    busiest: (options) => both((of) => of.busiest(options), busiestFirst, options),
    conflicts: (options) => inTurn(options, (of, page) => of.conflicts({ ...options, ...page })),
    release: async (identity, options) => (await holding(identity)).release(identity, options),
    forget: async (identity, options) => (await holding(identity)).forget(identity, options),
    resolve: async (identity, ending, options) => (await holding(identity)).resolve(identity, ending, options),
    erasing: {
      programTables: () => main.erasing.programTables(),
      count: (owner) => sum(owner, (of) => of.erasing.count(owner)),
      erase: (owner, progress) => sum(owner, (of) => of.erasing.erase(owner, progress)),
    },
    sweep: async () => (await main.sweep()) + (await claims.sweep()),
    doctor: async () => [...(await main.doctor()), ...(await unlessAway(claims.doctor(), [claimsAway]))],
  }

  /** Never without the second: what it holds would stay. */
  async function sum(_owner: unknown, ask: (of: Admin) => Promise<{ records: number; running: number }>) {
    const [first, second] = [await ask(main), await ask(claims)]
    return { records: first.records + second.records, running: first.running + second.running }
  }

  async function both<T>(
    ask: (of: Admin) => Promise<readonly T[]>,
    order: (a: T, b: T) => number,
    { limit }: { readonly limit?: number } = {},
  ): Promise<readonly T[]> {
    const [first, second] = await Promise.all([ask(main), unlessAway(ask(claims), [])])
    return [...first, ...second].toSorted(order).slice(0, limit)
  }

  async function inTurn<Row>(
    { limit, cursor = null }: Paging = {},
    ask: (of: Admin, page: Paging) => Promise<RowPage<Row>>,
  ): Promise<RowPage<Row>> {
    const bounds = limit === undefined ? {} : { limit }
    if (cursor?.startsWith(SECOND) === true) {
      const page = await ask(claims, { ...bounds, cursor: cursor.slice(SECOND.length) || null })
      return { rows: page.rows, cursor: page.cursor === null ? null : SECOND + page.cursor }
    }
    const page = await ask(main, { ...bounds, cursor })
    return { rows: page.rows, cursor: page.cursor ?? SECOND }
  }
}

/** A cursor that continues in the other store. */
const SECOND = 'claims:'

const claimsAway: Finding = {
  name: 'claims',
  verdict: 'danger',
  found: 'the store of the claims does not answer; what it holds is missing on every page',
  advice: 'See that it runs and can be reached: until then keys are refused, and keyless sends go out unguarded.',
}

/** Only an unreachable store is tolerated; every other error is thrown. */
async function unlessAway<T, E>(asked: Promise<T>, otherwise: E): Promise<T | E> {
  try {
    return await asked
  } catch (error) {
    if (isOnceError(error, 'store_unavailable')) return otherwise
    throw error
  }
}

const busiestFirst = (a: BusyCaller, b: BusyCaller) => attemptsOf(b) - attemptsOf(a)
const attemptsOf = ({ claims, replays, conflicts, inProgress }: BusyCaller) => claims + replays + conflicts + inProgress

function added(first: Status, second: Status): Status {
  const sum = <T extends Readonly<Record<string, number>>>(a: T, b: T) =>
    Object.fromEntries(Object.entries(a).map(([name, value]) => [name, value + (b[name] ?? 0)])) as T
  return {
    ...first,
    states: sum(first.states, second.states),
    lastHour: sum(first.lastHour, second.lastHour),
    standing: {
      ...first.standing,
      staleLeases: first.standing.staleLeases + second.standing.staleLeases,
      unknownWaiting: first.standing.unknownWaiting + second.standing.unknownWaiting,
    },
    oldestLease: first.oldestLease ?? second.oldestLease,
  }
}

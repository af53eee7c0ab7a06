import type { Identity, RecordId } from '../../ledger/core/identity.ts'
import { recordIdOf } from '../../ledger/core/identity.ts'
import { rendezvous } from '../../ledger/core/rendezvous.ts'
import type { SettingFault } from '../../ledger/core/settings.ts'
import { refuseFaults, unknownSetting } from '../../ledger/core/settings.ts'
import { createNonces } from './nonces.ts'
import type { RegionAnswer, RegionLink, RegionRequest } from './send.ts'
import { createRegionLink } from './send.ts'
import type { Arrived, HandOver, Vouched } from './token.ts'
import { CLIENT_HEADER, handOverProof, LONGEST_WAY_MS, REGION_HEADER, readRegionToken, regionToken } from './token.ts'

/** Which regions there are, and which one this is. */
export interface RegionRouterOptions {
  /** The name of this region. */
  readonly self: string
  /** Every region by its name, this one too, with the URL under which the others reach it. */
  readonly regions: Readonly<Record<string, string>>
  /** Shared by all regions and kept secret: it authenticates requests that another region forwarded. */
  readonly secret: string
  /**
   * The list of before, after a change: a region that was the home of a key answers for its records, or hands the key over.
   * Keep it until the retention of all keys has passed. A region that leaves stays in this list, and runs as long.
   * @default the list has not changed
   */
  readonly previous?: Readonly<Record<string, string>>
}

/**
 * Every identity has one home among the regions, and only its home accepts it: two regions never both take a key, and while
 * the home cannot be reached, no region does.
 */
export interface RegionRouter {
  readonly self: string
  home(identity: Identity): string
  /** The same by the id of its record. */
  homeOf(id: RecordId): string
  /** The home of before, where the list has changed and it was another one; null else. */
  formerHomeOf(id: RecordId): string | null
  /** What only regions can say of a record that has another home now. */
  handOverProof(handOver: HandOver): string
  /** The sender, tenant and caller of a request that another region forwarded; `null` when its token is not valid. */
  arrived(token: string, request: Omit<Arrived, 'self'>): Pick<Vouched, 'from' | 'tenant' | 'caller'> | null
  /** Sends a request to the home of its identity, or to the region `to`. Rejects when that gave no whole answer. */
  forward(request: RegionRequest, identity: Identity, to?: string): Promise<RegionAnswer>
  stop(): void
  [Symbol.dispose](): void
}

/**
 * Finds the home of every identity among regions, and forwards requests to it: for the option `region` of routes.
 *
 * @example
 * ```ts
 * import { createRegionRouter } from 'onceonly/region'
 *
 * const router = createRegionRouter({
 *   self: 'eu',
 *   regions: { eu: 'https://eu.example.com', us: 'https://us.example.com' },
 *   secret: process.env.REGION_SECRET ?? '',
 * })
 * console.log(router.home({ tenant: 'acme', caller: 'shop', operation: 'order.place', key: 'click-1' }))
 * ```
 */
export function createRegionRouter(options: RegionRouterOptions): RegionRouter {
  refuseFaults('regions', regionFaults(options))
  const { self, regions, secret, previous } = options
  const names = Object.keys(regions)
  const formerNames = previous === undefined ? null : Object.keys(previous)
  const links = new Map<string, RegionLink>()
  // A token is good before its time as well as after it: clocks differ both ways.
  const nonces = createNonces(2 * LONGEST_WAY_MS)
  const homeOf = (id: RecordId) => rendezvous(names, id)
  const home = (identity: Identity) => homeOf(recordIdOf(identity))

  function formerHomeOf(id: RecordId): string | null {
    const former = formerNames === null ? null : rendezvous(formerNames, id)
    return former === homeOf(id) ? null : former
  }

  function linkTo(name: string): RegionLink {
    const known = links.get(name)
    if (known !== undefined) return known
    const made = createRegionLink(regions[name] ?? previous?.[name] ?? '')
    links.set(name, made)
    return made
  }

  function stop(): void {
    for (const link of links.values()) link.stop()
    links.clear()
  }

  return {
    self,
    home,
    homeOf,
    formerHomeOf,
    handOverProof: (handOver) => handOverProof(secret, handOver),
    arrived(token, request) {
      const vouched = readRegionToken(secret, Date.now(), token, { self, ...request })
      return vouched !== null && nonces.take(vouched.nonce, performance.now()) ? vouched : null
    },
    forward(request, identity, to = home(identity)) {
      const { method, target, content } = request
      const token = regionToken(secret, Date.now(), { from: self, to, method, target, identity, content })
      const headers = request.headers.filter(([name]) => name !== REGION_HEADER && name !== CLIENT_HEADER)
      const client = request.client === undefined ? [] : [[CLIENT_HEADER, request.client] as const]
      return linkTo(to).send({ ...request, headers: [...headers, [REGION_HEADER, token], ...client] })
    },
    stop,
    [Symbol.dispose]: stop,
  }
}

/** Short enough to be guessed would be as good as none. */
const LEAST_SECRET_CHARS = 32

const settings = Object.keys({ self: true, regions: true, secret: true, previous: true } satisfies Record<
  keyof RegionRouterOptions,
  true
>)

/** What is wrong with the options of a region. */
export function regionFaults(given: unknown): SettingFault[] {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return [{ path: '', what: 'is not an object' }]
  const { self, regions, secret, previous, ...rest } = given as Readonly<Record<string, unknown>>
  const faults: SettingFault[] = Object.keys(rest).map((path) => ({ path, what: unknownSetting(path, settings) }))
  if (typeof secret !== 'string' || secret.length < LEAST_SECRET_CHARS) {
    faults.push({ path: 'secret', what: `is not a text of at least ${LEAST_SECRET_CHARS} characters` })
  }
  const tables = [['regions', regions], ...(previous === undefined ? [] : [['previous', previous]])] as const
  const found = tables.flatMap(([path, table]) => listFaults(path as string, table))
  const isKnown = tables.some(([, table]) => isTable(table) && typeof self === 'string' && Object.hasOwn(table, self))
  if (!isKnown && found.every(({ path }) => path !== 'regions'))
    found.push({ path: 'self', what: 'is none of the regions' })
  return [...faults, ...found]
}

const isTable = (given: unknown): given is Readonly<Record<string, unknown>> =>
  typeof given === 'object' && given !== null && !Array.isArray(given)

function listFaults(path: string, given: unknown): SettingFault[] {
  if (!isTable(given)) return [{ path, what: 'is not a table of names and URLs' }]
  const faults: SettingFault[] = []
  // Of an empty list of regions it is said that it lacks this one.
  if (path === 'previous' && Object.keys(given).length === 0) faults.push({ path, what: 'is empty' })
  for (const [name, url] of Object.entries(given)) {
    const fits = typeof url === 'string' && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
    if (!/^[\w-]{1,64}$/.test(name))
      faults.push({ path: `${path}.${name}`, what: 'is not a name of letters and digits' })
    if (!fits) faults.push({ path: `${path}.${name}`, what: 'is not an http or https URL' })
  }
  return faults
}

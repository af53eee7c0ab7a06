import { createRandom } from '../harness/statistics.ts'

const SEED = 20_260_101
const BODIES = 64
const BODY_BYTES = 1_024

interface Body {
  /** As a client sends it: members in the order of its code, no white space. */
  readonly sent: Buffer
  /** The same value, members the other way round, indented: has the same fingerprint. */
  readonly retold: Buffer
}

/**
 * Commands as services get them: names, amounts, times, addresses in several scripts, a list of lines. Every body is
 * filled up to a kilobyte, and all of them differ, so that nothing can be answered from a cache.
 */
export function createBodies(): readonly Body[] {
  const random = createRandom(SEED)
  const whole = (below: number) => Math.floor(random() * below)
  return Array.from({ length: BODIES }, (_, index) => {
    const order = {
      orderId: `ord_${whole(1e9).toString(36)}${index}`,
      placedAt: new Date(1_760_000_000_000 + whole(1e9)).toISOString(),
      customer: {
        name: 'Zoë Müller',
        email: `zoe.${index}@example.com`,
        vip: random() < 0.5,
        since: 2_000 + whole(25),
      },
      shipTo: {
        street: 'Große Straße 12',
        city: '東京',
        zip: `1${whole(1e5)}`,
        country: 'JP',
        note: 'ring\t"twice"\n',
      },
      total: whole(1e6) / 100,
      currency: 'EUR',
      discount: null,
      lines: Array.from({ length: 4 }, (__, line) => ({
        sku: `SKU-${whole(1e6)}`,
        quantity: 1 + whole(9),
        price: whole(1e5) / 100,
        tags: ['new', `line-${line}`],
      })),
      comment: '',
    }
    const missing = BODY_BYTES - Buffer.byteLength(JSON.stringify(order))
    order.comment = 'please leave it at the door '.repeat(40).slice(0, Math.max(0, missing))
    return { sent: Buffer.from(JSON.stringify(order)), retold: Buffer.from(JSON.stringify(reversed(order), null, 2)) }
  })
}

function reversed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(reversed)
  const members = Object.entries(value).reverse()
  return Object.fromEntries(members.map(([name, member]) => [name, reversed(member)]))
}

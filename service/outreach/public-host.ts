import { BlockList, isIP, isIPv4 } from 'node:net'

/**
 * Whether a URL leads into a network by what it says alone: a private address, however it is written, or a name that no
 * public name server knows. Any other name may still lead there; that is seen when it is resolved.
 */
export function isInside(url: URL, allowed: readonly string[]): boolean {
  if (isNamed(url, allowed)) return false
  const literal = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return isIP(literal) === 0 ? isInsideName(literal) : !isPublic(literal)
}

/** By host, or by host and port, as the operator wrote it. */
export function isNamed({ hostname, host }: URL, allowed: readonly string[]): boolean {
  return allowed.includes(hostname) || allowed.includes(host)
}

/** Set apart for one machine, for the link, or for private networks: RFC 6761, 6762 and 8375, and ICANN for `internal`. */
const INSIDE_NAMES = ['localhost', 'local', 'internal', 'home.arpa']

/** A name of one label is completed by the network that it is asked in. */
function isInsideName(hostname: string): boolean {
  const name = hostname.replace(/\.$/, '')
  return !name.includes('.') || INSIDE_NAMES.some((each) => name.endsWith(`.${each}`))
}

/** What is used inside of networks, on one machine, for documentation, for many at once, or not yet. */
const PRIVATE_V4: readonly (readonly [network: string, prefix: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]
/** Of IPv6 only this part is handed out to the public; what carries an IPv4 address inside is left out of it. */
const PUBLIC_V6 = ['2000::', 3] as const
const PRIVATE_V6: typeof PRIVATE_V4 = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

const privateV4 = new BlockList()
for (const [network, prefix] of PRIVATE_V4) privateV4.addSubnet(network, prefix, 'ipv4')
const publicV6 = new BlockList()
publicV6.addSubnet(...PUBLIC_V6, 'ipv6')
const privateV6 = new BlockList()
for (const [network, prefix] of PRIVATE_V6) privateV6.addSubnet(network, prefix, 'ipv6')

export function isPublic(address: string): boolean {
  if (isIPv4(address)) return !privateV4.check(address, 'ipv4')
  return publicV6.check(address, 'ipv6') && !privateV6.check(address, 'ipv6')
}

import { lookup as resolve } from 'node:dns'
import { type IncomingMessage, request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import { BlockList, isIP, isIPv4, type LookupFunction } from 'node:net'
import { Readable } from 'node:stream'
import { final, notDone } from 'onceonly'

/**
 * Who may write a sequence names any URL, and our server is inside a network where it is trusted. So webhook steps reach
 * public addresses only, unless an operator has named the host. Names are resolved once: the address that was looked at is
 * the one that is connected to, so that no second answer of a name server can lead elsewhere.
 */
export function createPublicFetch(allowed: readonly string[]): typeof globalThis.fetch {
  return async (input, init = {}) => {
    const url = new URL(String(input))
    const trusted = isNamed(url, allowed)
    const literal = url.hostname.replace(/^\[(.*)\]$/, '$1')
    if (!trusted && isIP(literal) !== 0 && !isPublic(literal)) throw refused(url.hostname)
    const answer = await send(url, init, trusted ? undefined : checkedLookup)
    const { statusCode: status = 0, headers } = answer
    if (status >= 300 && status < 400) {
      answer.destroy()
      throw new Error(`${url.host} answered with a redirect, which is not followed.`)
    }
    const retryAfter = headers['retry-after']
    return new Response(isEmpty(status) ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>), {
      status,
      headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
    })
  }
}

function send(url: URL, init: RequestInit, lookup: LookupFunction | undefined): Promise<IncomingMessage> {
  const { method = 'GET', headers, body, signal } = init
  const options = {
    method,
    headers: Object.fromEntries(new Headers(headers)),
    // A connection of its own: a kept one could belong to a name that leads elsewhere by now.
    agent: false,
    ...(signal === null || signal === undefined ? {} : { signal }),
    ...(lookup === undefined ? {} : { lookup }),
  } as const
  return new Promise((resolved, reject) => {
    const request = (url.protocol === 'https:' ? overHttps : overHttp)(url, options)
    request.on('response', resolved)
    request.on('error', reject)
    request.end(typeof body === 'string' ? body : undefined)
  })
}

/** One private address among public ones is enough to refuse: nobody knows which of them would be taken. */
const checkedLookup: LookupFunction = (hostname, options, done) => {
  resolve(hostname, { ...options, all: true }, (error, addresses) => {
    const [first] = addresses ?? []
    if (error !== null) done(error, '')
    else if (first === undefined) done(notDone(new Error(`${hostname} has no address.`)), '')
    else if (!addresses.every(({ address }) => isPublic(address))) done(refused(hostname), '')
    else if (options.all === true) done(null, addresses)
    else done(null, first.address, first.family)
  })
}

function refused(host: string): Error {
  return final(new Error(`${host} is not a public address, and no operator has allowed it.`))
}

/** By host, or by host and port, as the operator wrote it. */
function isNamed({ hostname, host }: URL, allowed: readonly string[]): boolean {
  return allowed.includes(hostname) || allowed.includes(host)
}

function isEmpty(status: number): boolean {
  return status === 204 || status === 205
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

import type { IncomingMessage } from 'node:http'

/** IPv4 as IPv6 sockets show it. */
const MAPPED = '::ffff:'
const GROUPS = 8
/** What one customer of a provider has at least. */
const PREFIX_GROUPS = 4

/** The share that an address counts for: an IPv4 address for itself, one of IPv6 for its /64. */
export function addressKey(address: string): string {
  if (!address.includes(':')) return address
  if (address.startsWith(MAPPED) && address.includes('.')) return address.slice(MAPPED.length)
  const [bare = ''] = address.split('%')
  const [before = '', after] = bare.split('::')
  const groups = before === '' ? [] : before.split(':')
  if (after !== undefined) {
    const last = after === '' ? [] : after.split(':')
    while (groups.length + last.length < GROUPS) groups.push('0')
    groups.push(...last)
  }
  return groups.slice(0, PREFIX_GROUPS).map(plainGroup).join(':')
}

const plainGroup = (group: string) => group.toLowerCase().replace(/^0+(?=.)/, '')

/**
 * The client of a request, by its address. Behind proxies of yours it is the last address of `X-Forwarded-For`: the nearest
 * proxy wrote it, and everything before it is what a client may have made up.
 */
export function clientKey({ socket, headers }: IncomingMessage, trustForwarded: boolean): string {
  const forwarded = trustForwarded ? headers['x-forwarded-for'] : undefined
  // Node joins several lines of it.
  const last = typeof forwarded === 'string' ? forwarded.slice(forwarded.lastIndexOf(',') + 1).trim() : ''
  return addressKey(last === '' || last.length > LONGEST_ADDRESS_CHARS ? (socket.remoteAddress ?? '') : last)
}

/** With a zone and a port. */
const LONGEST_ADDRESS_CHARS = 80

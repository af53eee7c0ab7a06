import { lookup } from 'node:dns'
import { type IncomingMessage, request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import { Readable } from 'node:stream'
import { final, notDone, singleCall } from 'onceonly'
import { isInside, isNamed, isPublic } from './public-host.ts'

/**
 * The author of a sequence names any URL, and our server is inside a network where it is trusted. So webhook steps reach public
 * addresses only, unless an operator has named the host. Names are resolved once: the checked address is the one that is
 * connected to, so that no second answer of a name server can lead elsewhere. A sequence is also checked when it is stored;
 * but names may lead elsewhere by now, and an operator may have changed the configuration.
 */
export function createPublicFetch(allowed: readonly string[], resolve = lookup): typeof globalThis.fetch {
  const checked = checkedLookup(resolve)
  return async (input, init = {}) => {
    const url = new URL(String(input))
    if (isInside(url, allowed)) throw refused(url.hostname)
    const answer = await send(url, init, isNamed(url, allowed) ? undefined : checked)
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

function send(url: URL, init: RequestInit, checked: LookupFunction | undefined): Promise<IncomingMessage> {
  const { method = 'GET', headers, body, signal } = init
  const options = {
    method,
    headers: Object.fromEntries(new Headers(headers)),
    // A connection of its own: a kept one could belong to a name that leads elsewhere by now.
    agent: false,
    ...(signal === null || signal === undefined ? {} : { signal }),
    ...(checked === undefined ? {} : { lookup: checked }),
  } as const
  return new Promise((resolved, reject) => {
    const request = (url.protocol === 'https:' ? overHttps : overHttp)(url, options)
    request.on('response', resolved)
    request.on('error', (error) => reject(singleCall(error) === 'not_done' ? notDone(error) : error))
    request.end(typeof body === 'string' ? body : undefined)
  })
}

/** One private address among public ones is enough to refuse: which of them would be used is unknown. */
function checkedLookup(resolve: typeof lookup): LookupFunction {
  return (hostname, options, done) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? []
      if (error !== null) done(error, '')
      else if (first === undefined) done(notDone(new Error(`${hostname} has no address.`)), '')
      else if (!addresses.every(({ address }) => isPublic(address))) done(refused(hostname), '')
      else if (options.all === true) done(null, addresses)
      else done(null, first.address, first.family)
    })
  }
}

function refused(host: string): Error {
  return final(new Error(`${host} is not a public address, and no operator has allowed it.`))
}

function isEmpty(status: number): boolean {
  return status === 204 || status === 205
}

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { request as httpRequest } from 'node:http'
import { Readable } from 'node:stream'
import { residentMib } from '../../support/resident.ts'

const MIB = 1_024 * 1_024
/** No two pieces are alike, so that a byte that is not where it belongs changes the digest. */
const piece = Buffer.from(Array.from({ length: MIB }, (_, at) => (at * 31 + (at >> 8)) & 0xff))

function* pieces(mebibytes: number): Generator<Buffer, undefined> {
  for (let at = 0; at < mebibytes; at++) yield Buffer.concat([Buffer.from([at & 0xff]), piece.subarray(1)])
}

const stream = (mebibytes: number) => Readable.from(pieces(mebibytes), { objectMode: false })

async function digestOf(bytes: AsyncIterable<unknown>): Promise<string> {
  const hash = createHash('sha256')
  for await (const each of bytes) hash.update(each as Buffer)
  return hash.digest('hex')
}

/** What every client should have received. */
export const digestOfLarge = (mebibytes: number): Promise<string> => digestOf(stream(mebibytes))

/** A service that sends a large body, and returns the digest of a received one. */
export function largeService(mebibytes: number): RequestListener {
  return (request, response) => {
    if (request.method === 'GET') return void stream(mebibytes).pipe(response)
    return void digestOf(request).then((digest) => response.end(digest))
  }
}

export async function upload(port: number, mebibytes: number): Promise<string> {
  const request = httpRequest({ port, method: 'PUT', path: '/large' })
  stream(mebibytes).pipe(request)
  const [response] = await once(request, 'response')
  return (await response.toArray()).join('')
}

export async function download(port: number): Promise<string> {
  const [response] = await once(httpRequest({ port, path: '/large' }).end(), 'response')
  return digestOf(response)
}

const LOOK_MS = 10

/** By how much the memory of a process grew at the most while something was done, in MiB. */
export async function growthMib<T>(pid: number, work: () => Promise<T>): Promise<{ value: T; mib: number }> {
  const before = residentMib(pid)
  let most = before
  const watch = setInterval(() => void (most = Math.max(most, residentMib(pid))), LOOK_MS)
  try {
    return { value: await work(), mib: Math.max(most, residentMib(pid)) - before }
  } finally {
    clearInterval(watch)
  }
}

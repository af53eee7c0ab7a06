import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from '@20minutes/s3rver'
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3'

export const BUCKET_OF_TESTS = 'uploads'
export const PREFIX_OF_TESTS = 'team-a'

/** A bucket with the real protocol over HTTP that checks signatures. */
export interface TestBucket extends AsyncDisposable {
  readonly client: S3Client
  /** For another client of the same bucket. */
  readonly config: S3ClientConfig
  /** For a server that imports from it. */
  readonly env: Readonly<Record<string, string>>
  /** Requests that came, as `METHOD key`. */
  readonly requests: readonly string[]
  /** Keys that can be written but not seen yet. */
  readonly hidden: Set<string>
  /** While it is set, every request fails. */
  away: boolean
}

const credentials = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }

/** Beside what the server knows itself, it has the condition of S3 that a name is given once. */
export async function openTestBucket(): Promise<TestBucket> {
  const directory = await mkdtemp(join(tmpdir(), 'onceonly-s3-'))
  const s3 = new S3rver({ directory, silent: true, configureBuckets: [{ name: BUCKET_OF_TESTS }] })
  await s3.configureBuckets()
  const handle = s3.callback()
  const requests: string[] = []
  const writing = new Map<string, Promise<unknown>>()
  const state = { hidden: new Set<string>(), away: false }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const key = decodeURIComponent(new URL(request.url ?? '', 'http://s3').pathname).slice(BUCKET_OF_TESTS.length + 2)
    const { method = '' } = request
    requests.push(`${method} ${key}`)
    if (state.away) return refuse(response, 503, 'SlowDown')
    if (method !== 'PUT' && state.hidden.has(key)) return refuse(response, 404, 'NoSuchKey')
    // S3 shows an object whole or not at all; this server shows parts of what it is writing.
    if (method !== 'PUT') await writing.get(key)
    if (method === 'PUT' && request.headers['if-none-match'] === '*') {
      if (writing.has(key)) return refuse(response, 409, 'ConditionalRequestConflict')
      writing.set(key, new Promise((resolve) => response.once('close', resolve)))
      response.once('close', () => writing.delete(key))
      if (await s3.store.existsObject(BUCKET_OF_TESTS, key)) return refuse(response, 412, 'PreconditionFailed')
    }
    handle(request, response)
  }

  const server = createServer((request, response) => void serve(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const config = {
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials,
    maxAttempts: 1,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  } as const
  const client = new S3Client(config)
  return Object.assign(state, {
    client,
    config,
    requests,
    env: {
      ONCEONLY_UPLOADS: `s3://${BUCKET_OF_TESTS}/${PREFIX_OF_TESTS}`,
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    },
    async [Symbol.asyncDispose]() {
      client.destroy()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      await rm(directory, { recursive: true, force: true })
    },
  })
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'content-type': 'application/xml', connection: 'close' })
  response.end(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>refused</Message></Error>`)
}

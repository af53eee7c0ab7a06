import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { createClient } from 'onceonly/client'
import OpenAI from 'openai'
import { Resend } from 'resend'
import Stripe from 'stripe'
import { Svix } from 'svix'
import { again, BadStatus, BODY, type Client, idIn, PAUSE_MS } from './command.ts'

const stripe: Client = {
  name: 'stripe',
  leaves: [429],
  async send({ port, key, timeoutMs, tries }) {
    const options = { host: '127.0.0.1', port, protocol: 'http', timeout: timeoutMs, maxNetworkRetries: tries } as const
    return (await new Stripe('sk_test_acme', options).customers.create(BODY, { idempotencyKey: key })).id
  },
}

const openai: Client = {
  name: 'openai',
  async send({ url, key, timeoutMs, tries }) {
    const sdk = new OpenAI({ apiKey: 'sk-acme', baseURL: `${url}/v1`, timeout: timeoutMs, maxRetries: tries })
    const made = await sdk.post<{ id: string }>('/things', { body: BODY, headers: { 'idempotency-key': key } })
    return idIn(200, JSON.stringify(made))
  },
}

const svix: Client = {
  name: 'svix',
  async send(command) {
    const { url, key, timeoutMs, tries } = command
    const retryScheduleInMs = Array.from({ length: tries }, () => PAUSE_MS)
    const sdk = new Svix('testsk_acme.eu', { serverUrl: url, requestTimeout: timeoutMs, retryScheduleInMs })
    const message = { eventType: 'thing.made', payload: BODY }
    return (await again(command, () => sdk.message.create('app', message, { idempotencyKey: key }))).id
  },
}

/** It hands over whatever the answer said. */
const statusIn = (error: unknown) => (error as { readonly status?: number }).status ?? 500

const resend: Client = {
  name: 'resend + p-retry',
  waits: true,
  send(command) {
    const { url, key } = command
    const sdk = new Resend('re_acme', { baseUrl: url })
    const mail = { from: 'a@example.com', to: 'b@example.com', subject: 'tea', text: 'tea' }
    return again(command, async () => {
      const { data, error } = await sdk.emails.send(mail, { idempotencyKey: key })
      if (error !== null) throw new BadStatus(error.statusCode ?? statusIn(error), error.message)
      return data.id
    })
  },
}

/** Its requests have no key of their own, so that it is given one, in the way that its guide shows for headers. */
const s3: Client = {
  name: '@aws-sdk/client-s3',
  resigns: true,
  async send({ url, cell, key, timeoutMs, tries }) {
    const sdk = new S3Client({
      endpoint: url,
      region: 'eu-central-1',
      forcePathStyle: true,
      credentials: { accessKeyId: 'AKIAACME', secretAccessKey: 'secret' },
      maxAttempts: tries,
      requestHandler: { requestTimeout: timeoutMs, throwOnRequestTimeout: true },
    })
    sdk.middlewareStack.add(
      (next) => (args) => {
        ;(args.request as { headers: Record<string, string> }).headers['idempotency-key'] = key
        return next(args)
      },
      { step: 'build' },
    )
    try {
      const { ETag } = await sdk.send(new PutObjectCommand({ Bucket: 'bucket', Key: cell, Body: 'hello' }))
      return JSON.parse(ETag ?? '""') as string
    } catch (error) {
      // A response that is not XML becomes an error about XML that contains the response.
      const { $response } = error as { readonly $response?: { readonly statusCode: number } }
      throw $response === undefined ? error : new BadStatus($response.statusCode, String(error))
    } finally {
      sdk.destroy()
    }
  },
}

const onceonly: Client = {
  name: 'onceonly/client',
  async send(command) {
    const { url, key, timeoutMs, tries } = command
    const sdk = createClient({ attempts: tries, attemptMs: timeoutMs })
    const headers = { authorization: 'Bearer acme', 'content-type': 'application/json' }
    const options = { method: 'POST', key, headers, body: JSON.stringify(BODY) }
    // A 500 is an answer to it, and whether to ask again is for its caller to say.
    return again(command, async () => {
      const { response } = await sdk.send(`${url}/things`, options)
      return idIn(response.status, await response.text())
    })
  },
}

export const sdks: readonly Client[] = [stripe, openai, svix, resend, s3, onceonly]

import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { text } from 'node:stream/consumers'
import axios from 'axios'
import axiosRetry from 'axios-retry'
import got from 'got'
import { hc } from 'hono/client'
import ky from 'ky'
import needle from 'needle'
import { ofetch } from 'ofetch'
import superagent from 'superagent'
import { Agent, RetryAgent, request as undiciRequest } from 'undici'
import wretch from 'wretch'
import { retry as wretchRetry } from 'wretch/middlewares'
import { again, BODY, type Client, type Command, idIn, PAUSE_MS, RETRIED } from './command.ts'

const JSON_BODY = JSON.stringify(BODY)
const headersOf = ({ key }: Command) => ({
  authorization: 'Bearer acme',
  'content-type': 'application/json',
  'idempotency-key': key,
})

const fetching: Client = {
  name: 'fetch + p-retry',
  send: (command) =>
    again(command, async () => {
      const signal = AbortSignal.timeout(command.timeoutMs)
      const options = { method: 'POST', headers: headersOf(command), body: JSON_BODY, signal }
      const response = await fetch(`${command.url}/things`, options)
      return idIn(response.status, await response.text())
    }),
}

const axiosRetries: Client = {
  name: 'axios + axios-retry',
  async send(command) {
    const client = axios.create({ timeout: command.timeoutMs, headers: headersOf(command) })
    axiosRetry(client, {
      retries: command.tries,
      retryDelay: () => PAUSE_MS,
      shouldResetTimeout: true,
      retryCondition: ({ response }) => response === undefined || RETRIED.includes(response.status),
    })
    const { status, data } = await client.post<unknown>(`${command.url}/things`, BODY)
    return idIn(status, JSON.stringify(data))
  },
}

const gotten: Client = {
  name: 'got',
  async send(command) {
    const made = await got.post(`${command.url}/things`, {
      headers: headersOf(command),
      json: BODY,
      timeout: { request: command.timeoutMs },
      retry: { limit: command.tries, methods: ['POST'], statusCodes: RETRIED, calculateDelay: pauseOf },
    })
    return idIn(made.statusCode, made.body)
  },
}

/** Zero is its word for "no more". */
const pauseOf = ({ computedValue }: { readonly computedValue: number }) => (computedValue === 0 ? 0 : PAUSE_MS)

const kying: Client = {
  name: 'ky',
  async send(command) {
    const response = await ky.post(`${command.url}/things`, {
      headers: headersOf(command),
      json: BODY,
      timeout: command.timeoutMs,
      totalTimeout: false,
      retry: {
        limit: command.tries,
        methods: ['post'],
        statusCodes: RETRIED,
        retryOnTimeout: true,
        delay: () => PAUSE_MS,
      },
    } as Parameters<typeof ky.post>[1])
    return idIn(response.status, await response.text())
  },
}

/** A try that it has given up for its time ends all of them. */
const ofetching: Client = {
  name: 'ofetch + p-retry',
  async send(command) {
    const made = await again(command, () =>
      ofetch<unknown>(`${command.url}/things`, {
        method: 'POST',
        headers: headersOf(command),
        body: BODY,
        timeout: command.timeoutMs,
        retry: command.tries,
        retryDelay: PAUSE_MS,
        retryStatusCodes: RETRIED,
      }),
    )
    return idIn(200, JSON.stringify(made))
  },
}

const undici: Client = {
  name: 'undici + RetryAgent',
  async send(command) {
    const own = new Agent({ headersTimeout: command.timeoutMs, bodyTimeout: command.timeoutMs })
    const dispatcher = new RetryAgent(own, {
      maxRetries: command.tries,
      minTimeout: PAUSE_MS,
      maxTimeout: PAUSE_MS,
      methods: ['POST'],
      statusCodes: RETRIED,
      errorCodes: ['ECONNRESET', 'UND_ERR_SOCKET', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'],
    })
    try {
      const options = { method: 'POST', headers: headersOf(command), body: JSON_BODY, dispatcher } as const
      const { statusCode, body } = await undiciRequest(`${command.url}/things`, options)
      return idIn(statusCode, await body.text())
    } finally {
      await own.destroy()
    }
  },
}

const superagents: Client = {
  name: 'superagent',
  async send(command) {
    const { status, text: body } = await superagent
      .post(`${command.url}/things`)
      .set(headersOf(command))
      .timeout(command.timeoutMs)
      .retry(command.tries, (error, response: unknown) => {
        const { status: answered } = (response ?? {}) as { readonly status?: number }
        return answered === undefined ? error !== null && error !== undefined : RETRIED.includes(answered)
      })
      .send(JSON_BODY)
    return idIn(status, body)
  },
}

/** It does not notice that an answer was cut: only this ends it. */
const NEEDLE_READ_MS = 5_000

const needles: Client = {
  name: 'needle + p-retry',
  send: (command) =>
    again(command, async () => {
      const { timeoutMs } = command
      const options = {
        headers: headersOf(command),
        response_timeout: timeoutMs,
        read_timeout: NEEDLE_READ_MS,
        parse: false,
      }
      const { statusCode = 0, body } = await needle('post', `${command.url}/things`, JSON_BODY, options)
      return idIn(statusCode, String(body))
    }),
}

const plainHttp: Client = {
  name: 'node:http + p-retry',
  send: (command) =>
    again(command, async () => {
      // A pool of its own, as services have one.
      const agent = new HttpAgent({ keepAlive: true })
      const { promise, resolve, reject } = Promise.withResolvers<string>()
      const options = { method: 'POST', agent, headers: { ...headersOf(command), 'content-length': JSON_BODY.length } }
      const request = httpRequest(`${command.url}/things`, options, (response) => {
        text(response)
          .then((body) => resolve(idIn(response.statusCode ?? 0, body)))
          .catch(reject)
      })
      request.on('error', reject)
      request.setTimeout(command.timeoutMs, () => request.destroy(new Error('Too late.')))
      request.end(JSON_BODY)
      try {
        return await promise
      } finally {
        agent.destroy()
      }
    }),
}

const wretching: Client = {
  name: 'wretch',
  send(command) {
    const retrying = wretchRetry({
      maxAttempts: command.tries,
      delayTimer: PAUSE_MS,
      delayRamp: (delay) => delay,
      retryOnNetworkError: true,
      until: (response) => response instanceof Response && !RETRIED.includes(response.status),
    })
    // It retries failures before the body only; the reader of the body handles later ones.
    return again(command, async () => {
      const response = await wretch(`${command.url}/things`)
        .headers(headersOf(command))
        .options({ signal: AbortSignal.timeout(command.timeoutMs) })
        .middlewares([retrying])
        .post(JSON_BODY)
        .res()
      return idIn(response.status, await response.text())
    })
  },
}

const honos: Client = {
  name: 'hono/client + p-retry',
  send: (command) =>
    again(command, async () => {
      const init = { signal: AbortSignal.timeout(command.timeoutMs), body: JSON_BODY }
      const client = hc(command.url, { headers: headersOf(command), init }) as unknown as {
        readonly things: { readonly $post: () => Promise<Response> }
      }
      const response = await client.things.$post()
      return idIn(response.status, await response.text())
    }),
}

export const libraries: readonly Client[] = [
  fetching,
  axiosRetries,
  gotten,
  kying,
  ofetching,
  undici,
  superagents,
  needles,
  plainHttp,
  wretching,
  honos,
]

import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Answer } from '../protocol/exchange.ts'
import { jsonAnswer } from '../protocol/exchange.ts'
import { isLocal } from '../protocol/local.ts'

/** As `createPrometheusMeter` has it. */
export interface Metrics {
  readonly contentType: string
  text(): Promise<string>
}

export interface MetricsOptions {
  readonly metrics?: Metrics
  readonly metricsToken?: string | null
}

/** Metrics reveal how much business there is: they are for this machine, or for holders of the token. */
export async function metricsAnswer({ metrics, metricsToken = null }: MetricsOptions, message: IncomingMessage) {
  if (metrics === undefined) return problem(404, 'Nothing is here')
  const { headers, httpVersion } = message
  if (metricsToken === null && !isLocal({ remoteAddress: message.socket.remoteAddress, headers, httpVersion })) {
    return problem(403, 'Without `metricsToken` in the configuration the metrics are for this machine only')
  }
  if (metricsToken !== null && !hasToken(message, metricsToken)) {
    return problem(401, 'Send the token as `Authorization: Bearer …`', [['www-authenticate', 'Bearer']])
  }
  const type = [['content-type', metrics.contentType]] as const
  return { status: 200, headers: type, body: Buffer.from(await metrics.text()) } satisfies Answer
}

function problem(status: number, title: string, headers: Answer['headers'] = []): Answer {
  return jsonAnswer(status, 'application/json', { title }, headers)
}

function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const given = /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1] ?? ''
  return timingSafeEqual(digest(given), digest(token))
}

const digest = (text: string) => createHash('sha256').update(text).digest()

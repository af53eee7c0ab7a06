import { answerCases, profileCases } from './http-cases-answers.ts'
import { asyncCases } from './http-cases-async.ts'
import { contentCases } from './http-cases-content.ts'
import { finalityCases } from './http-cases-finality.ts'
import { fingerprintCases } from './http-cases-fingerprint.ts'
import { keyCases } from './http-cases-key.ts'
import { lostCases } from './http-cases-lost.ts'
import { replayCases } from './http-cases-replay.ts'
import { keepCases, requestCases } from './http-cases-request.ts'
import { statusCases } from './http-cases-status.ts'
import { transactionCases } from './http-cases-transaction.ts'
import type { Serve } from './http-site.ts'
import type { HttpCase, HttpGround } from './http-stage.ts'
import { memoryGround } from './http-stage.ts'

export interface HttpConformanceOptions {
  /** Any runner: `test` of node:test, `it` of vitest, … */
  readonly test: (name: string, body: () => Promise<void>) => unknown
  /** Serves routes with the adapter that is to be proved. */
  readonly serve: Serve
  /** A fresh store per case. @default the memory store */
  readonly open?: () => Promise<HttpGround>
}

/** The cases of `httpConformance`, for a runner that wants them one by one. */
export const httpCases: readonly HttpCase[] = [
  ...keyCases,
  ...contentCases,
  ...fingerprintCases,
  ...requestCases,
  ...replayCases,
  ...keepCases,
  ...answerCases,
  ...asyncCases,
  ...profileCases,
  ...finalityCases,
  ...lostCases,
  ...transactionCases,
  ...statusCases,
]

/** Proves that an adapter speaks the protocol, by real requests over real sockets. */
export function httpConformance({ test, serve, open = memoryGround }: HttpConformanceOptions): void {
  for (const each of httpCases) test(each.name, () => each.run(serve, open))
}

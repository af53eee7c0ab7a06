import type { IncomingMessage } from 'node:http'
import type { Answer } from '../http/exchange.ts'
import { jsonAnswer } from '../http/exchange.ts'
import type { HttpOptions } from '../http/protect.ts'
import { createStatus } from '../http/status.ts'
import { sameCredentials } from './caller.ts'
import type { Asked, Rule } from './rule.ts'
import { CREDENTIALS_HEADER, ruleFor } from './rule.ts'
import { createSpool } from './spool.ts'

/** `GET /operations/{id}` at the gateway: what became of a request, for whoever made it. */
export type TellStatus = (message: IncomingMessage) => Promise<Answer>

/** Rules may know their callers in different ways; whoever is right by the rule of the record is told. */
export function createTellStatus(rules: readonly Rule[], common: Omit<HttpOptions<Asked, unknown>, 'who'>): TellStatus {
  const statuses = rules.map(({ who }) =>
    createStatus<Asked, unknown>({
      ...common,
      who,
      // Routes without a name are known by the resource that stands in the record.
      authorize: async (asked, { identity, pointer }) => {
        const [, method, path] = /^([A-Z]+) (\/.*)$/.exec(identity.operation) ?? []
        if (method === undefined || path === undefined) return !identity.operation.includes(' sha256:')
        const rule = ruleFor(rules, method, path)
        if (rule === null || rule === 'malformed') return true
        const { authorize } = rule.route.definition
        return authorize === undefined || (await authorize(asked, { identity, pointer }))
      },
    }),
  )

  return async (message) => {
    const asked: Asked = { message, spool: createSpool(message, { maxBytes: 0, bodyMs: 1 }) }
    let told: Answer | null = null
    for (const status of statuses) {
      told = await status.answer(message.url ?? '/', asked).catch(() => null)
      if (told !== null && told.status !== NOT_FOUND) break
    }
    return told === null ? nothing() : visible(told, message)
  }
}

const NOT_FOUND = 404

const nothing = () => jsonAnswer(NOT_FOUND, 'application/json', { title: 'There is no such operation' })

/** As for a replay: a minimal record is for the credentials that made it, and never says which those are. */
function visible(answer: Answer, message: IncomingMessage): Answer {
  const text = Buffer.from(answer.body).toString()
  if (!text.includes(CREDENTIALS_HEADER)) return answer
  const document = JSON.parse(text) as { result?: { headers?: Record<string, string>; body?: unknown } }
  const headers = document.result?.headers
  const recorded = headers?.[CREDENTIALS_HEADER]
  if (headers === undefined || recorded === undefined) return answer
  if (!sameCredentials(message, recorded)) return nothing()
  delete headers[CREDENTIALS_HEADER]
  return jsonAnswer(answer.status, 'application/json', document)
}

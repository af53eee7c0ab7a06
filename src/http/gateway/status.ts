import type { IncomingMessage } from 'node:http'
import type { Identity } from '../../ledger/core/identity.ts'
import { incomingOf } from '../protocol/capture-node.ts'
import { lookElsewhere, lookingHere } from '../protocol/elsewhere.ts'
import type { Answer } from '../protocol/exchange.ts'
import { jsonAnswer, noBody } from '../protocol/exchange.ts'
import type { HttpOptions } from '../protocol/protect.ts'
import { createStatusBy, isOf } from '../protocol/status.ts'
import { sameCredentials } from './caller.ts'
import type { Asked, Rule } from './rule.ts'
import { CREDENTIALS_HEADER, ruleFor } from './rule.ts'
import { createSpool } from './spool.ts'

/** `GET /operations/{id}` at the gateway: what became of a request, for whoever made it. */
export type TellStatus = (message: IncomingMessage) => Promise<Answer>

/** Every gateway knows callers by what they send: none has to take another one's word for it. */
const NOBODY = { tenant: '', caller: '' }

/** Rules may know their callers in different ways; whoever is right by a rule of the record is told. */
export function createTellStatus(rules: readonly Rule[], common: Omit<HttpOptions<Asked, unknown>, 'who'>): TellStatus {
  const { region } = common
  const status = createStatusBy<Asked, unknown>(
    {
      ...common,
      // Routes without a name are known by the resource that stands in the record.
      authorize: async (asked, { identity, pointer }) => {
        const rule = ruleOf(rules, identity)
        if (rule === 'unreadable') return false
        const { authorize } = rule?.route.definition ?? {}
        return authorize === undefined || (await authorize(asked, { identity, pointer }))
      },
    },
    async ({ id, request, head, voice, record }) => {
      if (region !== undefined && head !== undefined) {
        const arrived = lookingHere(region, head, id)
        const answer = arrived === null ? await lookElsewhere(region, head, id, NOBODY, voice) : null
        if (answer !== null) return { answer }
      }
      const found = await record()
      return found !== null && (await isMaker(rules, request, found.identity)) ? found : null
    },
  )

  return async (message) => {
    const asked: Asked = { message, spool: createSpool(message, { maxBytes: 0, bodyMs: 1 }) }
    const answer = await status.answer(message.url ?? '/', asked, incomingOf(message, noBody)).catch(() => null)
    return answer === null ? nothing() : visible(answer, message)
  }
}

/** The rule of a record whose operation is its resource; null where a name, or no rule any more, stands for it. */
function ruleOf(rules: readonly Rule[], { operation }: Identity): Rule | 'unreadable' | null {
  const [, method, path] = /^([A-Z]+) (\/.*)$/.exec(operation) ?? []
  if (method === undefined || path === undefined) return operation.includes(' sha256:') ? 'unreadable' : null
  const rule = ruleFor(rules, method, path)
  return rule === 'malformed' ? null : rule
}

async function isMaker(rules: readonly Rule[], asked: Asked, identity: Identity): Promise<boolean> {
  const rule = ruleOf(rules, identity)
  const candidates = rule === null ? rules : rule === 'unreadable' ? [] : [rule]
  for (const { who } of candidates) {
    try {
      if (isOf(identity, await who(asked))) return true
    } catch {
      // This rule wants to know more of whoever asks; another one may not.
    }
  }
  return false
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

import type { IncomingMessage } from 'node:http'
import type { Identity } from '../../ledger/core/identity.ts'
import { NodeIncoming } from '../protocol/capture-node.ts'
import { lookingHere } from '../protocol/elsewhere.ts'
import type { Answer } from '../protocol/exchange.ts'
import { jsonAnswer, noBody } from '../protocol/exchange.ts'
import type { HttpOptions } from '../protocol/protect.ts'
import { createStatusBy, isOf, recordOf } from '../protocol/status.ts'
import { bindingFor, CREDENTIALS_HEADER } from './credentials.ts'
import type { Asked, Rule } from './rule.ts'
import { ruleFor } from './rule.ts'
import { createSpool } from './spool.ts'
import type { Tokens } from './tokens.ts'

/** `GET /operations/{id}` at the gateway: the outcome of a request, for its caller. */
export type TellStatus = (message: IncomingMessage) => Promise<Answer>

/** Every gateway identifies callers by their request, so no region needs to pass the caller on. */
const NO_CALLER = { tenant: '', caller: '' }

/** Rules may identify callers in different ways; a caller that matches by a rule of the record gets the outcome. */
export function createTellStatus(
  rules: readonly Rule[],
  common: Omit<HttpOptions<Asked, unknown>, 'who'>,
  tokens: Tokens | null = null,
): TellStatus {
  const { region } = common
  // The record may stem from a removed rule: a caller that matches by any rule, or by the default one, gets the
  // outcome.
  const bindings = [bindingFor({}), ...rules.flatMap(({ binding }) => (binding === null ? [] : [binding]))]
  const status = createStatusBy<Asked, unknown>(
    {
      ...common,
      bound: {
        header: CREDENTIALS_HEADER,
        same: (asked, recorded) => bindings.some(({ same }) => same(asked, recorded)),
      },
      // Routes without a name are known by the resource that stands in the record.
      authorize: async (asked, { identity, pointer }) => {
        const rule = ruleOf(rules, identity)
        if (rule === 'unreadable') return false
        const { authorize } = rule?.route.definition ?? {}
        return authorize === undefined || (await authorize(asked, { identity, pointer }))
      },
    },
    async (look) => {
      const { id, request, head } = look
      const isSent = region !== undefined && head !== undefined && lookingHere(region, head, id) !== null
      const found = await recordOf(region, look, NO_CALLER, isSent)
      return found === null || 'answer' in found || (await isMaker(rules, request, found.identity)) ? found : null
    },
  )

  return async (message) => {
    const spool = createSpool(message, { maxBytes: 0, bodyMs: 1 })
    const asked: Asked = { message, spool, verified: tokens === null ? null : await tokens.verify(message) }
    const target = message.url ?? '/'
    return status.answer(target, asked, new NodeIncoming(message, null, target, noBody)).catch(() => nothing())
  }
}

/** The rule of a record whose operation is its resource; null where a name, or no rule any more, stands for it. */
function ruleOf(rules: readonly Rule[], { operation }: Identity): Rule | 'unreadable' | null {
  const [, method, path] = /^(?:guard\.)?([A-Z]+) (\/.*)$/.exec(operation) ?? []
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
      // This rule needs more of the caller's identity; another one may not.
    }
  }
  return false
}

const NOT_FOUND = 404

const nothing = () => jsonAnswer(NOT_FOUND, 'application/json', { title: 'There is no such operation' })

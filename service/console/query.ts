import type { FastifyReply, FastifyRequest } from 'fastify'
import { type FieldError, sendInvalid } from '../http/problem.ts'
import { unstorable } from '../http/text.ts'

type Texts<Name extends string> = Readonly<Record<Name, string | null>>

/** A handler that gets these texts of the query; an empty one was not given, and one that no store holds is refused. */
export function withQuery<const Name extends string>(
  names: readonly Name[],
  answer: (given: Texts<Name>, reply: FastifyReply) => Promise<unknown>,
) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const query = request.query as Readonly<Record<string, unknown>>
    const faults = names.flatMap((name): FieldError[] => {
      const value = query[name] ?? ''
      const detail = typeof value === 'string' ? unstorable(value) : 'is given more than once'
      return detail === null ? [] : [{ field: name, detail }]
    })
    if (faults.length > 0) return sendInvalid(reply, faults)
    return await answer(Object.fromEntries(names.map((name) => [name, query[name] || null])) as Texts<Name>, reply)
  }
}

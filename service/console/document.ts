import { actionSchema } from '../admin/command-schemas.ts'
import { type Declaration, natural, type Repeat, record, type Schema, textOrNull } from '../openapi/declaration.ts'

/** What the document says about the console: its pages read much more, but only for themselves. */

const system = { name: 'console', about: 'What the pages of the console use to sign in and to act.' }

function repeated(id: string, repeats: string): Repeat {
  return natural(id, {
    repeats,
    businessUniqueness: 'none is at stake: it acts on records that exist',
    outbox: 'nothing is published, except for dead letters that an operator redrives',
    tests: 'test/contract/service/console.test.ts',
  })
}

const session: Schema = record({
  signedIn: { type: 'boolean' },
  role: { type: ['string', 'null'], enum: ['viewer', 'operator', null] },
  name: textOrNull,
  localOnly: { type: 'boolean' },
  note: textOrNull,
})

export const signIn: Declaration = {
  id: 'console.sign-in',
  system,
  summary: 'Sign in to the console',
  description:
    'The answer sets a cookie that only this API gets back. Requests that change something also need the header ' +
    '`X-Onceonly-Console: 1`, unless they bring the token as `Authorization: Bearer …`.',
  access: 'operator',
  hasSessions: true,
  body: {
    schema: record({ token: { type: 'string' }, name: { type: 'string', maxLength: 100 } }, ['name']),
    example: { token: 'the-operator-token', name: 'ada' },
  },
  answers: {
    200: { about: 'Signed in', schema: session },
    403: { about: 'Not from here' },
    429: { about: 'Too many wrong tokens' },
  },
  repeat: repeated('console.sign-in', 'a second session does no harm'),
}

export const signOut: Declaration = {
  id: 'console.sign-out',
  system,
  summary: 'Sign out of the console',
  access: 'operator',
  hasSessions: true,
  answers: { 204: { about: 'The cookie is gone' }, 403: { about: 'Not from here' } },
  repeat: repeated('console.sign-out', 'the session stays ended'),
}

export const act: Declaration = {
  id: 'console.act',
  system,
  summary: 'Act on a record, a message or a run',
  description:
    'The arguments of each `action` are those of the command of the same name. With `preview` it only answers what would ' +
    'be done, also to viewers. Every action is written to the audit.',
  access: 'operator',
  hasSessions: true,
  body: {
    schema: actionSchema,
    example: { action: 'sweep' },
  },
  answers: {
    200: { about: 'Done', schema: record({ result: {} }) },
    403: { about: 'The operator role is needed' },
    404: { about: 'There is no such record, dead letter or run' },
    409: { about: 'It changed meanwhile, or its state does not allow it' },
  },
  repeat: repeated('console.act', 'an action that was done before is refused; `ifFence` protects a newer attempt'),
}

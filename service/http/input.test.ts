import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import Type from 'typebox'
import {
  checked,
  filledText,
  type InputTypes,
  InvalidInput,
  inputValidator,
  oneOf,
  optionalText,
  ruled,
} from './input.ts'

const wait = Type.Object(
  { type: oneOf(['wait']), ms: Type.Integer({ minimum: 0, maximum: 9 }) },
  { additionalProperties: false, title: 'a step of type wait' },
)
const mail = Type.Object({ type: oneOf(['mail']), text: filledText(5) })
const command = ruled(
  Type.Object(
    {
      name: filledText(5),
      note: optionalText(5),
      colour: Type.Optional(oneOf(['red', 'blue'])),
      steps: Type.Optional(Type.Array(Type.Unsafe({ oneOf: [wait, mail] }), { minItems: 1, maxItems: 3 })),
    },
    { additionalProperties: false },
  ),
  ({ name, note }: { readonly name?: unknown; readonly note?: unknown }) =>
    name === 'same' && note === 'same' ? [{ field: 'note', detail: 'is the same as name' }] : [],
)

/** What is wrong, as `field detail`. */
function complaints(value: unknown): readonly string[] {
  const result = checked(command, value)
  return 'errors' in result ? result.errors.map(({ field, detail }) => `${field} ${detail}`) : []
}

test('every field that is wrong is named, unknown ones first, then in the order of the schema', () => {
  assert.deepEqual(complaints({ colour: 'green', note: '', other: 1, name: ' ' }), [
    'other is not a field of this command',
    'name is blank',
    'note is blank',
    'colour is none of red, blue',
  ])
  assert.deepEqual(complaints({ name: 'a', note: null, colour: 'red', steps: [{ type: 'mail', text: 'b' }] }), [])
  assert.deepEqual(complaints({ name: 'a\0', note: 'sixsix' }), [
    'name contains a NUL character',
    'note is longer than 5 characters',
  ])
  for (const body of [null, [], 7, 'text']) assert.deepEqual(complaints(body), ['body is not a JSON object'])
  assert.deepEqual(complaints({}), ['name is missing'])
})

test('a rule of an object names the member, also beside other errors', () => {
  assert.deepEqual(complaints({ name: 'same', note: 'same', colour: 1 }), [
    'note is the same as name',
    'colour is not a string',
  ])
})

test('of several shapes the one that was chosen is explained', () => {
  const steps = [{ type: 'wait', ms: 1.5, text: 'x' }, { type: 'fax' }, 'mail']
  assert.deepEqual(complaints({ name: 'a', steps }), [
    'steps[0].text is not a field of a step of type wait',
    'steps[0].ms is not a whole number from 0 to 9',
    'steps[1].type is none of wait, mail',
    'steps[2] is not a JSON object',
  ])
})

test('a list that is too long is one error, and an answer names a bounded number of fields', () => {
  assert.deepEqual(complaints({ name: 'a', steps: Array.from({ length: 1_000 }, () => 7) }), [
    'steps has more than 3 items',
  ])
  const unknown = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`field${at}`, 1]))
  assert.equal(complaints({ name: 'a', ...unknown }).length, 100)
})

test('a number of a query is read as one, and nothing else is', async () => {
  const server = Fastify()
  server.setValidatorCompiler(inputValidator)
  server.setErrorHandler((error, _request, reply) =>
    reply.code(400).send(error instanceof InvalidInput ? error.errors : String(error)),
  )
  const querystring = Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 9 })) })
  server
    .withTypeProvider<InputTypes>()
    .get('/', { schema: { querystring } }, (request) => ({ limit: request.query.limit ?? null }))
  const ask = async (url: string): Promise<unknown> => (await server.inject(url)).json()
  assert.deepEqual(await ask('/?limit=7'), { limit: 7 })
  assert.deepEqual(await ask('/'), { limit: null })
  const refused = [{ field: 'limit', detail: 'is not a whole number from 1 to 9' }]
  for (const text of ['', '0', '1.5', 'x', '7&limit=8']) assert.deepEqual(await ask(`/?limit=${text}`), refused, text)
  await server.close()
})

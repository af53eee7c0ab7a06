import { argumentsOf, type Command, commandTable, schemaOf } from 'onceonly/admin/commands'
import Type, { type TSchema } from 'typebox'
import type { Schema } from '../openapi/declaration.ts'

/** The arguments of a command that reads, for the query of its route. */
export function queryOf({ arguments: of }: Command): Readonly<Record<string, TSchema>> {
  return Object.fromEntries(
    Object.entries(of).map(([name, { about, schema, isRequired }]) => {
      const described = Type.Unsafe({ description: about, ...schema })
      return [name, isRequired ? described : Type.Optional(described)]
    }),
  )
}

/** The body of an action: the name of a command, and its arguments. The command itself checks them. */
export const actionSchema: TSchema = Type.Unsafe({
  oneOf: Object.entries(commandTable).flatMap(([action, command]) => {
    if (command.kind !== 'act' || 'isLocal' in command) return []
    const schema = schemaOf(argumentsOf(command))
    const properties = { action: { const: action }, ...(schema['properties'] as Schema) }
    const required = ['action', ...(schema['required'] as readonly string[])]
    return [{ ...schema, description: command.summary, required, properties }]
  }),
})

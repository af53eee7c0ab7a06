import { type Html, html, prose } from './html.ts'

/** As much of JSON Schema as our declarations use. */
export interface ShownSchema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly title?: string
  readonly description?: string
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, ShownSchema>>
  readonly items?: ShownSchema
  readonly oneOf?: readonly ShownSchema[]
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly default?: unknown
}

export type Schemas = Readonly<Record<string, ShownSchema>>

/** Schemas inside of schemas; what lies deeper is named, but not unfolded. */
const DEPTH_MOST = 6

/** The members of a schema, as a tree. */
export function schemaTree(schema: ShownSchema, schemas: Schemas, depth = 0): Html {
  const seen = resolved(schema, schemas)
  if (depth > DEPTH_MOST) return html`<span class="type">…</span>`
  if (seen.properties !== undefined) {
    const rows = Object.entries(seen.properties).map(([name, member]) => {
      const required = seen.required?.includes(name) === true
      return html`<li>
        <code class="name">${name}</code> <span class="type">${typeOf(member, schemas)}</span>
        ${required ? null : html`<span class="hint">optional</span>`}
        ${about(member, schemas)} ${inside(member, schemas, depth)}
      </li>`
    })
    return html`<ul class="tree">${rows}</ul>`
  }
  return inside(seen, schemas, depth)
}

/** What a list holds, or one of several shapes. */
function inside(member: ShownSchema, schemas: Schemas, depth: number): Html {
  const seen = resolved(member, schemas)
  if (seen.properties !== undefined) return schemaTree(seen, schemas, depth + 1)
  if (seen.items !== undefined) return inside(seen.items, schemas, depth)
  const shapes = (seen.oneOf ?? []).filter((shape) => resolved(shape, schemas).properties !== undefined)
  return html`${shapes.map((shape) => html`${title(shape)}${schemaTree(shape, schemas, depth + 1)}`)}`
}

function title({ title }: ShownSchema): Html | null {
  return title === undefined ? null : html`<p class="shape">${title}</p>`
}

function about(member: ShownSchema, schemas: Schemas): Html {
  const { description, ...bounds } = { ...resolved(member, schemas), ...member }
  const words = boundsOf(bounds)
  return html`${words === '' ? null : html`<span class="hint">${words}</span>`}
    ${description === undefined ? null : html`<span class="about">${prose(description)}</span>`}`
}

function boundsOf(schema: ShownSchema): string {
  const { minLength, maxLength, minimum, maximum, minItems, maxItems } = schema
  const values = schema.enum?.map((value) => JSON.stringify(value)).join(' | ')
  return [
    values,
    range(minLength, maxLength, 'characters'),
    range(minimum, maximum, ''),
    range(minItems, maxItems, 'items'),
    schema.default === undefined ? undefined : `default ${JSON.stringify(schema.default)}`,
  ]
    .filter((each) => each !== undefined)
    .join(', ')
}

function range(least: number | undefined, most: number | undefined, unit: string): string | undefined {
  if (least === undefined && most === undefined) return undefined
  const span = most === undefined ? `from ${least}` : least === undefined ? `up to ${most}` : `${least}–${most}`
  return `${span} ${unit}`.trim()
}

function typeOf(schema: ShownSchema, schemas: Schemas): string {
  const seen = resolved(schema, schemas)
  const name = schema.$ref?.split('/').at(-1)
  if (seen.items !== undefined) return `list of ${typeOf(seen.items, schemas)}`
  if (name !== undefined) return name
  if (seen.type === undefined && seen.oneOf !== undefined)
    return seen.oneOf.map((each) => typeOf(each, schemas)).join(' | ')
  return seen.format ?? [seen.type ?? 'anything'].flat().join(' | ')
}

export function resolved(schema: ShownSchema, schemas: Schemas): ShownSchema {
  const name = schema.$ref?.split('/').at(-1)
  return name === undefined ? schema : (schemas[name] ?? {})
}

import { OnceError } from '../../ledger/core/errors.ts'

/**
 * What Nest keeps about classes and methods, under names that it has had since its first versions. Read and written here
 * directly, so that the entry loads no copy of Nest that might be another one than the application's.
 */
const ROUTE_ARGUMENTS = '__routeArguments__'
const INJECTED_PROPERTIES = 'self:properties_metadata'
const PASSTHROUGH = '__responsePassthrough__'

/** Kinds of route arguments that no pipe runs on. */
export const REQUEST_ARGUMENT = 0
export const RESPONSE_ARGUMENT = 1
const NEXT_ARGUMENT = 2

/** `reflect-metadata`, which Nest loads: its functions are on the global `Reflect`. */
interface Reflection {
  getMetadata(key: unknown, target: object, member?: string | symbol): unknown
  getMetadataKeys(target: object): unknown[]
  defineMetadata(key: unknown, value: unknown, target: object, member?: string | symbol): void
}

type Arguments = Readonly<Record<string, { readonly index: number }>>

/** A method of a controller, by its class. */
export interface Place {
  readonly type: object
  readonly member: string | symbol
}

function reflection(): Reflection {
  if ('defineMetadata' in Reflect) return Reflect as unknown as Reflection
  throw new OnceError(
    'bad_option',
    "The decorators of onceonly/nest need Nest's metadata: import @nestjs/common first.",
  )
}

function argumentsOf({ type, member }: Place): Arguments {
  return (reflection().getMetadata(ROUTE_ARGUMENTS, type, member) ?? {}) as Arguments
}

/** How many arguments the method has, by its decorators. */
export function argumentCount(place: Place): number {
  return Math.max(0, ...Object.values(argumentsOf(place)).map(({ index }) => index + 1))
}

/** The index of the request or response among the arguments of a method; of a new last one, where it has none. */
export function argumentAt(place: Place, kind: typeof REQUEST_ARGUMENT | typeof RESPONSE_ARGUMENT, last: number) {
  const known = argumentsOf(place)
  const found = Object.entries(known).find(([key]) => key.startsWith(`${kind}:`))
  if (found !== undefined) return found[1].index
  const { type, member } = place
  const takesOver = Object.keys(known).some((key) => key.startsWith(`${NEXT_ARGUMENT}:`))
  const added = { ...known, [`${kind}:${last}`]: { index: last, pipes: [] } }
  reflection().defineMetadata(ROUTE_ARGUMENTS, added, type, member)
  // A method that gets the response has to answer by itself. This one does not know that it gets it.
  if (kind === RESPONSE_ARGUMENT && !takesOver) reflection().defineMetadata(PASSTHROUGH, true, type, member)
  return last
}

/** As `@Inject(token)` on a property. */
export function injectProperty(type: object, key: symbol, token: unknown): void {
  const known = (reflection().getMetadata(INJECTED_PROPERTIES, type) ?? []) as readonly { readonly key: unknown }[]
  if (known.some((each) => each.key === key)) return
  reflection().defineMetadata(INJECTED_PROPERTIES, [...known, { key, type: token }], type)
}

/** Decorators below ours have marked the method that it takes the place of. */
export function copyMetadata(from: object, to: object): void {
  const { getMetadataKeys, getMetadata, defineMetadata } = reflection()
  for (const key of getMetadataKeys(from)) defineMetadata(key, getMetadata(key, from), to)
}

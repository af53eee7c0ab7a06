import { OnceError } from './core/errors.ts'
import type { IdentityParts } from './core/identity.ts'
import { checkIdentityPart } from './core/identity.ts'
import { checkOptionNames } from './core/option-names.ts'

/** Parts of the identity that a scope can fix. */
export type ScopeParts = Partial<Pick<IdentityParts, 'tenant' | 'caller'>>

/** What is left to give of an identity. */
export type PartsWithout<Parts, Fixed> = Omit<Parts, keyof Fixed>

const scopeNames = ['tenant', 'caller'] as const

/** Adds the parts of a scope to those of the scopes around it. */
export function narrowed(outer: ScopeParts, given: ScopeParts): ScopeParts {
  checkOptionNames('`scope`', given, scopeNames)
  for (const name of scopeNames) if (Object.hasOwn(given, name)) checkIdentityPart(name, given[name])
  return joined(outer, given)
}

/** The identity of a call: its own parts, and those of its scope, which it cannot change. */
export function partsIn(scope: ScopeParts, given: object): IdentityParts {
  return joined(scope, given) as IdentityParts
}

function joined<T extends object>(scope: ScopeParts, given: T): ScopeParts & T {
  for (const name of scopeNames) {
    const fixed = scope[name]
    const own = (given as ScopeParts | null)?.[name]
    if (fixed === undefined || own === undefined || own === fixed) continue
    throw new OnceError('bad_identity', `The identity's \`${name}\` is fixed by the scope.`, {
      details: { part: name },
    })
  }
  return { ...given, ...scope }
}

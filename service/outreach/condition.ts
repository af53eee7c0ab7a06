import { lookUp } from './scope.ts'
import type { Scope } from './sequence.ts'
import type { Condition } from './step.ts'

export function holds({ path, op, value }: Condition, scope: Scope): boolean {
  const found = lookUp(scope, path)
  switch (op) {
    case 'exists':
      return found !== undefined && found !== null
    case 'eq':
      return (found ?? null) === value
    case 'ne':
      return (found ?? null) !== value
    case 'gt':
      return order(found, value) > 0
    case 'lt':
      return order(found, value) < 0
    case 'contains':
      if (Array.isArray(found)) return found.includes(value)
      return typeof found === 'string' && typeof value === 'string' && found.includes(value)
  }
}

/** Numbers by size, texts by their characters; anything else has no order, and NaN is neither more nor less. */
function order(left: unknown, right: unknown): number {
  if (typeof left === 'number' && typeof right === 'number') return left - right
  if (typeof left !== 'string' || typeof right !== 'string') return Number.NaN
  return left < right ? -1 : Number(left > right)
}

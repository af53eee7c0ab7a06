import { checkGatewayConfig } from './check.ts'
import type { GatewayConfig } from './config.ts'
import type { Pattern } from './pattern.ts'
import { compilePattern } from './pattern.ts'

/** A rule's name in metrics and logs: the operation, or the methods and the pattern. */
export function labelOf(name: string | undefined, methods: readonly string[], path: string): string {
  return name ?? `${methods.join('|')} ${path}`
}

/**
 * Records of rules without a name are called by their concrete paths, of which there are as many as clients like. For
 * the `label` of `createTelemetry`: the rule that each of them belongs to.
 */
export function gatewayLabels(given: GatewayConfig): (operation: string) => string {
  const rules: { readonly methods: readonly string[]; readonly fits: Pattern; readonly label: string }[] = []
  const { routes = [], strict: always = false } = checkGatewayConfig(given)
  for (const { method, path, operation, strict = always } of routes) {
    if (operation !== undefined) continue
    const methods = typeof method === 'string' ? [method] : method
    rules.push({ methods, fits: compilePattern(path, strict), label: labelOf(undefined, methods, path) })
  }
  return (operation) => {
    const [, method = '', path = ''] = /^([A-Z]+) (\/.*)$/.exec(operation) ?? []
    return rules.find(({ methods, fits }) => methods.includes(method) && fits(path))?.label ?? operation
  }
}

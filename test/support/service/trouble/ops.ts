import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ops = join(import.meta.dirname, '../../../../ops')

export interface Query {
  readonly expr: string
  readonly legendFormat: string
}

interface Dashboard {
  readonly panels: readonly { readonly targets: readonly Query[] }[]
}

export function dashboardQueries(): readonly Query[] {
  const { panels } = JSON.parse(readFileSync(join(ops, 'dashboard.json'), 'utf8')) as Dashboard
  return panels.flatMap(({ targets }) => targets)
}

export function ruleExpressions(): readonly string[] {
  return [...readFileSync(join(ops, 'alerts.yaml'), 'utf8').matchAll(/expr: (.*)/g)].map(([, text = '']) => text)
}

/** The metrics that a query asks for; a histogram by its own name. */
export function metricsIn(expr: string): readonly string[] {
  return [...expr.matchAll(/\b(?:onceonly|process|nodejs)_[a-z_]+\b/g)].map(([name]) =>
    name.replace(/_(?:bucket|count|sum)$/, ''),
  )
}

/** The labels that a query needs of each metric it groups. */
export function labelsIn(expr: string): readonly (readonly [metric: string, label: string])[] {
  return [...expr.matchAll(/by \(([a-z, ]+)\) \((?:\w+\()?(\w+)/g)].flatMap(([, labels = '', metric = '']) =>
    labels.split(', ').map((label): [string, string] => [metric, label]),
  )
}

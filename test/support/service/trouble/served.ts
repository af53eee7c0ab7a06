import assert from 'node:assert/strict'
import { assertRules } from './alerts.ts'
import { dashboardQueries, labelsIn, metricsIn, type Query, ruleExpressions } from './ops.ts'
import type { Place } from './trouble.ts'

/** Where a metric of dashboard and rules is looked for: at a server, or here, because it takes what only this place has. */
const elsewhere: Readonly<Record<string, Place>> = {
  onceonly_claims_up: 'apart',
  onceonly_guard_errors_total: 'apart',
  onceonly_outbox_publish_failures_total: 'apart',
  onceonly_store_losses_total: 'apart',
  onceonly_guard_pending_total: 'gateway',
  onceonly_background_failures_total: 'library',
  onceonly_dedup_expired_retries_total: 'library',
  onceonly_dedup_joined_total: 'library',
  onceonly_dedup_leases_lost_total: 'library',
  onceonly_dedup_outcomes_not_stored_total: 'library',
  onceonly_dedup_replays_refused_total: 'library',
  onceonly_dedup_retry_later_total: 'library',
  onceonly_dedup_swept_total: 'library',
}

const placeOf = (metric: string): Place => elsewhere[metric] ?? 'server'
const placeOfQuery = (expr: string): Place =>
  metricsIn(expr)
    .map(placeOf)
    .find((place) => place !== 'server') ?? 'server'

/**
 * Of what the processes of a place answer at `/metrics`: it has every metric that dashboard and rules look for there, with
 * the labels that they group by, and promtool finds something with every query of the dashboard.
 */
export function assertServed(promtool: string, at: Place, texts: readonly string[]): void {
  const expressions = [...dashboardQueries().map(({ expr }) => expr), ...ruleExpressions()]
  const series = texts.flatMap(seriesOf)
  const wanted = new Set(expressions.flatMap(metricsIn).filter((metric) => placeOf(metric) === at))
  const served = new Set(series.map(({ family }) => family))
  assert.deepEqual(
    [...wanted].filter((metric) => !served.has(metric)),
    [],
    `${at} must serve each of these`,
  )
  for (const [metric, label] of expressions.flatMap(labelsIn)) {
    for (const { name, labels } of series)
      if (name === metric) assert.ok(labels.includes(`${label}="`), `${label} of ${name}`)
  }
  const queries = dashboardQueries().filter(({ expr }) => placeOfQuery(expr) === at)
  assertRules(promtool, [
    {
      interval: '1m',
      input_series: series.map(({ name, labels, kind, value, process }) => ({
        series: `${name}{${[labels, 'job="onceonly"', `instance="${process}"`].filter(Boolean).join(',')}}`,
        values: kind === 'gauge' ? `${value}x10` : `0+${value}x10`,
      })),
      promql_expr_test: queries.map((query) => ({ eval_time: '10m', ...found(query) })),
    },
  ])
}

interface Series {
  readonly name: string
  /** Its name; of the lines of a histogram, that of the histogram. */
  readonly family: string
  readonly labels: string
  readonly kind: string
  readonly value: string
  readonly process: number
}

function seriesOf(text: string, process: number): readonly Series[] {
  const kinds = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', kind = '']) => [name, kind]))
  return [...text.matchAll(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = '', labels = '', value = '']) => {
    const family = kinds.has(name) ? name : name.replace(/_(?:bucket|count|sum)$/, '')
    return { name, family, labels, kind: kinds.get(family) ?? '', value, process }
  })
}

/** That there is something, and that all of it has the labels of its legend. */
function found({ expr, legendFormat }: Query) {
  const asked = expr.replaceAll('$__rate_interval', '5m').replaceAll('$job', 'onceonly')
  const labels = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label)
  // What is not a number is more than nothing for no comparison.
  const marked = labels.reduce(
    (inner, label) => `label_replace(${inner}, "has_${label}", "yes", "${label}", ".+")`,
    `((${asked}) >= 0)`,
  )
  const marks = labels.map((label) => `has_${label}`)
  return {
    expr: `group by (${marks.join(', ')}) (${marked})`,
    exp_samples: [{ labels: `{${marks.map((mark) => `${mark}="yes"`).join(', ')}}`, value: 1 }],
  }
}

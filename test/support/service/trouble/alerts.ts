import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ops } from './ops.ts'

/** One value of one series, and the rule that it must fire; null: it fires none. */
export interface Observed {
  readonly series: string
  readonly value: number
  readonly alert: string | null
  /** It is counted again and again. */
  readonly lasts: boolean
}

/** Feeds each value to the shipped rules for half an hour, alone with a store that answers: exactly its rule fires. */
export function assertAlerts(promtool: string, observed: readonly Observed[]): void {
  assertRules(promtool, observed.map(testOf))
}

/** Runs tests of the shipped rules, as promtool takes them. */
export function assertRules(promtool: string, tests: readonly object[]): void {
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-alerts-'))
  try {
    copyFileSync(join(ops, 'alerts.yaml'), join(folder, 'alerts.yaml'))
    const file = join(folder, 'test.yaml')
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ rule_files: ['alerts.yaml'], tests }))
    const { status, stdout, stderr } = spawnSync(promtool, ['test', 'rules', file], { encoding: 'utf8' })
    assert.equal(status, 0, stdout + stderr)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function testOf({ series, value, alert, lasts }: Observed) {
  const counted = lasts ? '_x5 1+1x24' : `_x5 1 ${value}x24`
  const store = series === 'onceonly_store_up' ? [] : [{ series: 'onceonly_store_up', values: '1x30' }]
  return {
    interval: '1m',
    // A counter appears with its first event and grows; a gauge is there all the time.
    input_series: [...store, { series, values: series.includes('_total') ? counted : `${value}x30` }],
    promql_expr_test: [
      {
        // Fired at some time, because what is counted within five minutes falls again.
        expr: 'group by (alertname) (max_over_time(ALERTS{alertstate="firing"}[25m]))',
        eval_time: '29m',
        exp_samples: alert === null ? [] : [{ labels: `{alertname="${alert}"}`, value: 1 }],
      },
    ],
  }
}

/** The value of a series in the text that a server answers; null where it is not there. */
export function valueOf(text: string, series: string): number | null {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `))
  return line === undefined ? null : Number(line.slice(series.length + 1))
}

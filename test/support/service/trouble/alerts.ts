import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const rules = join(import.meta.dirname, '../../../../ops/alerts.yaml')

/** One value of one series, and the rule that it must fire; null: it fires none. */
export interface Observed {
  readonly series: string
  readonly value: number
  readonly alert: string | null
}

/** Feeds each value to the shipped rules for half an hour, alone with a store that answers: exactly its rule fires. */
export async function assertAlerts(promtool: string, observed: readonly Observed[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-alerts-'))
  try {
    await copyFile(rules, join(folder, 'alerts.yaml'))
    const file = join(folder, 'test.yaml')
    await writeFile(file, JSON.stringify({ rule_files: ['alerts.yaml'], tests: observed.map(testOf) }))
    const { status, stdout, stderr } = spawnSync(promtool, ['test', 'rules', file], { encoding: 'utf8' })
    assert.equal(status, 0, stdout + stderr)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function testOf({ series, value, alert }: Observed) {
  const store = series === 'onceonly_store_up' ? [] : [{ series: 'onceonly_store_up', values: '1x30' }]
  return {
    interval: '1m',
    // A counter appears with its first event and grows; a gauge is there all the time.
    input_series: [...store, { series, values: series.includes('_total') ? `_x5 1 ${value}x24` : `${value}x30` }],
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

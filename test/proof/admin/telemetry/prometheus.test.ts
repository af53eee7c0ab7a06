import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  counters,
  createPrometheusMeter,
  createTelemetry,
  gauges,
  histograms,
  observeProcess,
} from 'onceonly/telemetry'
import { findProgram, promtool } from '../../../../tools/servers/programs.ts'
import { dashboardQueries, metricsIn, ops, ruleExpressions } from '../../../support/service/trouble/ops.ts'

const program = await findProgram(promtool)
const options = program === null ? { skip: 'promtool is not installed' } : {}

function promtoolSays(
  args: readonly string[],
  input?: string,
): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync(program ?? '', args, { encoding: 'utf8', cwd: ops, input: input ?? '' })
  return { status, text: stdout + stderr }
}

/** Every metric, with a number. */
async function everything(): Promise<string> {
  const meter = createPrometheusMeter()
  for (const { name, about } of Object.values(counters)) meter.createCounter(name, { description: about }).add(1, {})
  for (const { name, about } of Object.values(histograms)) {
    meter.createHistogram(name, { description: about }).record(1, { operation: 'a' })
  }
  for (const { name, about } of Object.values(gauges)) {
    meter.createObservableGauge(name, { description: about }).addCallback((result) => result.observe(1))
  }
  observeProcess(meter)
  return await meter.text()
}

test('every metric passes promtool', options, async () => {
  const { status, text } = promtoolSays(['check', 'metrics'], await everything())
  assert.equal(status, 0, text)
  assert.equal(text, '')
  assert.notEqual(promtoolSays(['check', 'metrics'], 'nonsense{ 1\n').status, 0)
})

test('the alert rules are valid, and each of them fires in its case and in no quiet hour', options, () => {
  assert.equal(promtoolSays(['check', 'rules', 'alerts.yaml']).status, 0)
  const { status, text } = promtoolSays(['test', 'rules', 'alerts.test.yaml'])
  assert.equal(status, 0, text)
})

test('every query of the dashboard is one, and only for the jobs that were picked', options, (t) => {
  const queries = dashboardQueries().map(({ expr }) => expr)
  assert.ok(queries.length > 20)
  const rules = queries.map((expr, at) => {
    for (const metric of metricsIn(expr)) assert.match(expr, new RegExp(`\\b${metric}\\w*\\{job=~"\\$job"`), expr)
    return { record: `dashboard:${at}`, expr: expr.replaceAll('$__rate_interval', '5m') }
  })
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-rules-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'rules.yaml')
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
  const { status, text } = promtoolSays(['check', 'rules', file])
  assert.equal(status, 0, text)
})

test('every alert has a case, and every metric of alerts and dashboard exists', async () => {
  createTelemetry({ meter: createPrometheusMeter() })
  const rules = readFileSync(join(ops, 'alerts.yaml'), 'utf8')
  const cases = readFileSync(join(ops, 'alerts.test.yaml'), 'utf8')
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
  assert.equal(alerts.length, 14)
  for (const name of alerts) assert.ok(cases.includes(`alertname: ${name}`), name)
  const ours = new Set([...(await everything()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name))
  const expressions = [...ruleExpressions(), ...dashboardQueries().map(({ expr }) => expr)]
  assert.ok(expressions.length > 20)
  for (const text of expressions) {
    const names = metricsIn(text)
    assert.notEqual(names.length, 0, text)
    for (const name of names) assert.ok(ours.has(name), `${name} in ${text}`)
  }
})

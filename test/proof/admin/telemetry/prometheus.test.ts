import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { counters, createPrometheusMeter, createTelemetry, gauges, histograms } from 'onceonly/telemetry'
import { findProgram, promtool } from '../../../../tools/servers/programs.ts'

const program = await findProgram(promtool)
const options = program === null ? { skip: 'promtool is not installed' } : {}
const ops = join(import.meta.dirname, '../../../../ops')

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

test('every alert has a case, and every metric of alerts and dashboard exists', async () => {
  createTelemetry({ meter: createPrometheusMeter() })
  const rules = readFileSync(join(ops, 'alerts.yaml'), 'utf8')
  const cases = readFileSync(join(ops, 'alerts.test.yaml'), 'utf8')
  const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
  assert.equal(alerts.length, 10)
  for (const name of alerts) assert.ok(cases.includes(`alertname: ${name}`), name)
  const ours = new Set(
    [...Object.values(counters), ...Object.values(histograms), ...Object.values(gauges)].map(
      ({ name }) => name as string,
    ),
  )
  const prefix = /\b(?:dedup|guard|outbox|inbox|runs?|saga|stream|http_server|store|operator|background)_[a-z_]+\b/g
  const dashboard = readFileSync(join(ops, 'dashboard.json'), 'utf8')
  const expressions = [...rules.matchAll(/expr: (.*)/g), ...dashboard.matchAll(/"expr": "(.*)"/g)].map(
    ([, text = '']) => text,
  )
  assert.ok(expressions.length > 20)
  for (const text of expressions) {
    for (const [name] of text.matchAll(prefix)) {
      assert.ok(ours.has(name.replace(/_(?:bucket|count|sum)$/, '')), `${name} in ${text}`)
    }
  }
})

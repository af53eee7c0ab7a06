import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { counters, gauges, histograms } from 'onceonly/telemetry'
import ts from 'typescript'
import { ops } from '../../../support/service/trouble/ops.ts'

const text = readFileSync(join(ops, 'dashboard.json'), 'utf8')

interface Panel {
  readonly id: number
  readonly title: string
  readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>
  readonly targets: readonly { readonly refId: string; readonly expr: string }[]
}

const { panels } = JSON.parse(text) as { readonly panels: readonly Panel[] }

/** Grafana's own types, of the version in compose.yaml. JSON has the values of their enums, and leaves out defaults. */
const typed = (json: string) => `
import type { Dashboard, Panel } from '@grafana/schema'
import type { Options as Stat } from '@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen.d.ts'
import type { Options as Series } from '@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.d.ts'
type Json<T> = T extends string ? \`\${T}\` : T extends object ? { [Name in keyof T]: Json<T[Name]> } : T
type Some<T> = T extends object ? { [Name in keyof T]?: Some<T[Name]> } : T
interface Query { refId: string; expr: string; legendFormat: string }
type Needed = Required<Pick<Panel, 'id' | 'title' | 'gridPos' | 'datasource' | 'fieldConfig'>>
type Of<Type, Options> = Omit<Panel, 'type' | 'options' | 'targets'> & Needed & { type: Type; options: Some<Options>; targets: Query[] }
type Ours = Omit<Dashboard, 'panels'> & Required<Pick<Dashboard, 'uid' | 'title'>> & { panels: (Of<'stat', Stat> | Of<'timeseries', Series>)[] }
export const dashboard: Json<Ours> = ${json}
`

/** What TypeScript says of each text. */
function check(texts: readonly string[]): readonly (readonly string[])[] {
  const files = texts.map((_, at) => join(ops, `dashboard-${at}.ts`))
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
  }
  const host = ts.createCompilerHost(options)
  const fromDisk = host.getSourceFile.bind(host)
  host.getSourceFile = (name, ...more) => {
    const source = texts[files.indexOf(name)]
    return source === undefined ? fromDisk(name, ...more) : ts.createSourceFile(name, source, ts.ScriptTarget.ESNext)
  }
  const program = ts.createProgram(files, options, host)
  return files.map((name) =>
    [
      ...program.getSyntacticDiagnostics(program.getSourceFile(name)),
      ...program.getSemanticDiagnostics(program.getSourceFile(name)),
    ].map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')),
  )
}

test('the dashboard has the form that Grafana requires', () => {
  const broken: readonly (readonly [found: string, put: string])[] = [
    ['"colorMode": "background"', '"colorMode": "backgrounds"'],
    ['"refId": "A"', '"ref": "A"'],
    ['"schemaVersion"', '"version2"'],
    ['"mode": "absolute"', '"mode": "relative"'],
    ['"type": "datasource"', '"type": "source"'],
  ]
  for (const [found] of broken) assert.ok(text.includes(found), found)
  const texts = [text, ...broken.map(([found, put]) => text.replace(found, put))]
  const [ours, ...theirs] = check(texts.map(typed))
  assert.deepEqual(ours, [])
  for (const [at, said] of theirs.entries()) assert.notEqual(said.length, 0, broken[at]?.join(' → '))
})

test('it is for the Grafana that the containers start', () => {
  const read = (path: string) => readFileSync(join(ops, '..', path), 'utf8')
  const { devDependencies } = JSON.parse(read('package.json')) as { readonly devDependencies: Record<string, string> }
  assert.ok(read('compose.yaml').includes(`image: grafana/grafana:${devDependencies['@grafana/schema']}\n`))
})

test('its panels have a place and an id of their own, and show every metric', () => {
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  assert.equal(new Set(panels.map(({ title }) => title)).size, panels.length)
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) => {
    assert.ok(x >= 0 && x + w <= 24, 'a dashboard is 24 wide')
    return Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`)
  })
  assert.equal(new Set(cells).size, cells.length, 'no panel lies on another')
  for (const { title, targets } of panels) {
    assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title)
  }
  const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join('\n')
  for (const { name } of [counters, histograms, gauges].flatMap((rows) => Object.values(rows))) {
    assert.match(queries, new RegExp(`\\b${name}(?:_bucket)?\\{`), name)
  }
})
